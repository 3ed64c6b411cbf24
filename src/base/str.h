/* A growable byte string: always NUL-terminated, may hold NULs. Init with STR_INIT, done with
 * str_done. Never larger than STR_MAX: beyond it mem_fatal (callers cap what users can feed). */
#ifndef FADER_BASE_STR_H
#define FADER_BASE_STR_H

#include <stdarg.h>
#include <stddef.h>

struct str {
    char *data; /* owned; NULL only while cap is 0: use str_text to read */
    size_t len; /* bytes, without the NUL */
    size_t cap;
};

#define STR_INIT                                                                                   \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }
#define STR_MAX ((size_t)1 << 40)

void str_done(struct str *s);  /* frees the memory; s is empty after, and may be used again */
void str_clear(struct str *s); /* empties it, keeps the memory */

/* Append. str_add takes NULs too; str_add_format is printf's. */
void str_add(struct str *s, const char *bytes, size_t len);
void str_add_text(struct str *s, const char *text);
void str_add_char(struct str *s, char c);
void str_add_format(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void str_add_vformat(struct str *s, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
void str_truncate(struct str *s, size_t len);         /* no effect when already shorter */
void str_erase(struct str *s, size_t at, size_t len); /* closes the gap */
void str_insert(struct str *s, size_t at, const char *bytes, size_t len); /* before byte `at` */
const char *str_text(const struct str *s); /* "" when nothing was added yet */
char *str_steal(struct str *s);            /* gives the memory away; s is empty after */

#endif
