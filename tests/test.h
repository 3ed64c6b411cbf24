/* What every cmocka test needs, in the order in which cmocka wants it. */
#ifndef FADER_TESTS_TEST_H
#define FADER_TESTS_TEST_H

#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* cmocka compares numbers in f32: this in f64, NaN is near nothing. */
#define assert_near(a, b, by) test_near((double)(a), (double)(b), (double)(by), __FILE__, __LINE__)

static inline void test_near(double a, double b, double by, const char *file, int line)
{
    if (a - b <= by && b - a <= by)
        return;
    print_error("%.17g is not within %g of %.17g\n", a, by, b);
    _fail(file, line);
}

/* The default model, or NULL: then the test calls skip(). With FADER_REQUIRE_MODEL=1 a missing
 * model is a failure. */
static inline const char *test_model(void)
{
    static char path[4096];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache != NULL && *cache != '\0')
        snprintf(path, sizeof path, "%s/fader/models/SmolLM2-135M-Instruct.Q4_1.gguf", cache);
    else
        snprintf(path, sizeof path, "%s/.cache/fader/models/SmolLM2-135M-Instruct.Q4_1.gguf",
                 home != NULL ? home : "");
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        const char *require = getenv("FADER_REQUIRE_MODEL");
        if (require != NULL && strcmp(require, "1") == 0)
            fail_msg("no model at %s, and FADER_REQUIRE_MODEL=1", path);
        return NULL;
    }
    fclose(f);
    return path;
}

#endif
