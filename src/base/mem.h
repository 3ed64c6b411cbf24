/* Memory. Small allocations never return NULL: when the system has no memory left, mem_fatal says
 * so and exits through the hook that gives the terminal back. What a user's file or model can make
 * large (weights, KV blocks, whole files) is asked for with mem_try_* or mem_map, which may fail.
 */
#ifndef FADER_BASE_MEM_H
#define FADER_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);               /* uninitialised; size 0 gives a unique block */
void *mem_zalloc(size_t size);              /* zeroed */
void *mem_array(size_t count, size_t size); /* zeroed; an overflow of count * size is fatal */
void *mem_realloc_array(void *p, size_t count, size_t size); /* what is new is uninitialised */
char *mem_strdup(const char *text);                          /* NULL gives NULL */
char *mem_strndup(const char *text, size_t len);             /* copies len bytes and adds a NUL */
void *mem_dup(const void *p, size_t size);                   /* a copy of `size` bytes */
void *mem_try_alloc(size_t size);                            /* NULL when there is none */

/* Grows `*items` (each of `item_size` bytes, capacity `*cap`) so that `need` fit; doubles. */
void mem_grow(void *items_ptr, size_t *cap, size_t need, size_t item_size);

/* Anonymous zeroed pages, 2 MB-aligned and advised to be huge where `size` allows. NULL when there
 * are none. Freed by mem_unmap with the same size. */
void *mem_map(size_t size);
void mem_unmap(void *p, size_t size);

/* Called once before a fatal exit, so that the interface can give the terminal back. */
void mem_set_fatal_hook(void (*hook)(void));
_Noreturn void mem_fatal(const char *what);

#endif
