#include "config.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

static void (*fatal_hook)(void);

void mem_set_fatal_hook(void (*hook)(void))
{
    fatal_hook = hook;
}

_Noreturn void mem_fatal(const char *what)
{
    if (fatal_hook != NULL)
        fatal_hook();
    fprintf(stderr, "fader: %s: out of memory\n", what);
    exit(1);
}

void *mem_try_alloc(size_t size)
{
    return malloc(size > 0 ? size : 1);
}

void *mem_alloc(size_t size)
{
    void *p = mem_try_alloc(size);

    if (p == NULL)
        mem_fatal("memory");
    return p;
}

void *mem_zalloc(size_t size)
{
    return mem_array(1, size);
}

void *mem_array(size_t count, size_t size)
{
    void *p = calloc(count > 0 ? count : 1, size > 0 ? size : 1);

    if (p == NULL)
        mem_fatal("memory");
    return p;
}

void *mem_realloc_array(void *p, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        mem_fatal("memory");
    void *q = realloc(p, bytes > 0 ? bytes : 1);
    if (q == NULL)
        mem_fatal("memory");
    return q;
}

char *mem_strdup(const char *text)
{
    return text == NULL ? NULL : mem_strndup(text, strlen(text));
}

char *mem_strndup(const char *text, size_t len)
{
    char *copy = mem_alloc(len + 1);

    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void *mem_dup(const void *p, size_t size)
{
    void *copy = mem_alloc(size);

    if (size > 0)
        memcpy(copy, p, size);
    return copy;
}

void mem_grow(void *items_ptr, size_t *cap, size_t need, size_t item_size)
{
    void *items;

    if (need <= *cap)
        return;
    size_t want = *cap < 8 ? 8 : *cap;
    while (want < need) {
        if (want > SIZE_MAX / 2)
            mem_fatal("memory");
        want *= 2;
    }
    memcpy(&items, items_ptr, sizeof items);
    items = mem_realloc_array(items, want, item_size);
    memcpy(items_ptr, &items, sizeof items);
    *cap = want;
}

/* Maps one huge page more than asked, and gives the unaligned ends back. */
static void *map_aligned(size_t size)
{
    size_t span;

    if (__builtin_add_overflow(size, (size_t)HUGE_PAGE, &span))
        return NULL;
    char *p = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    size_t head = (size_t)(-(uintptr_t)p & (HUGE_PAGE - 1));
    if (head > 0)
        munmap(p, head);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (size + page - 1) & ~(page - 1);
    if (span - head > used)
        munmap(p + head + used, span - head - used);
    return p + head;
}

void *mem_map(size_t size)
{
    if (size < HUGE_PAGE) {
        void *p = mmap(NULL, size > 0 ? size : 1, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    void *p = map_aligned(size);
#ifdef MADV_HUGEPAGE
    if (p != NULL)
        madvise(p, size, MADV_HUGEPAGE);
#endif
    return p;
}

void mem_unmap(void *p, size_t size)
{
    if (p != NULL)
        munmap(p, size > 0 ? size : 1);
}
