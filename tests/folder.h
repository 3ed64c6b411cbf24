/* A temporary folder for a test program: cmocka's group set-up and tear-down make and remove it. */
#ifndef FADER_TESTS_FOLDER_H
#define FADER_TESTS_FOLDER_H

#include "test.h"

#include <ftw.h>

static char folder[sizeof "/tmp/fader-test-XXXXXX"];

static inline int folder_make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/fader-test-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static inline int folder_remove_one(const char *path, const struct stat *st, int type,
                                    struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* With all that is in it. */
static inline int folder_remove(void **state)
{
    (void)state;
    return nftw(folder, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
