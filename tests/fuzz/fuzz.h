/* Fuzzing: programs that feed what fader reads from strangers (model files, presets, transcripts, keys)
 * with honest inputs that were damaged.
 *
 * A target is one file that defines the two functions below. driver.c is a main for it which damages
 * the seeds in a fixed, reproducible order: `make check` runs that for some seconds. With libFuzzer
 * (configure --enable-fuzzer, clang) the same target is linked once more, as fuzz_NAME. `make fuzz`
 * runs whichever there is for long. */
#ifndef FADER_TESTS_FUZZ_FUZZ_H
#define FADER_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/str.h"

/* Reads these bytes with everything that reads such; returns 0. What is wrong ends the process: a
 * crash, a sanitizer, or FUZZ_CHECK. The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Appends the i-th honest input to `out`; false when there are no more. The same at every call. */
bool fuzz_seed(size_t i, struct str *out);

/* How many damaged inputs a test reads: some seconds, with sanitizers. */
extern const uint64_t fuzz_test_runs;

#define FUZZ_CHECK(holds) ((holds) ? (void)0 : fuzz_fail(#holds, __FILE__, __LINE__))

static inline void fuzz_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, what);
    abort();
}

/* One line that says something, without control characters. */
static inline void fuzz_check_error(const struct error *err)
{
    FUZZ_CHECK(err->text[0] != '\0');
    for (const char *p = err->text; *p != '\0'; p++)
        FUZZ_CHECK((unsigned char)*p >= ' ' && *p != 127);
}

/* A file in memory with these bytes: its path, until the next call with the same `slot` (0 or 1). */
const char *fuzz_file(int slot, const void *bytes, size_t len);

#endif
