/* The recorded values: tests/golden/NAME as JSON; the caller's to delete. */
#ifndef FADER_TESTS_GOLDEN_H
#define FADER_TESTS_GOLDEN_H

#include "test.h"

#include <cjson/cJSON.h>

#include "base/file.h"

static inline cJSON *golden_read(const char *name)
{
    const char *source = getenv("FADER_SRCDIR");
    struct str path = STR_INIT, text = STR_INIT;
    struct error err;

    str_add_format(&path, "%s/tests/golden/%s", source != NULL ? source : ".", name);
    if (!file_read(path.data, 1 << 24, &text, &err))
        fail_msg("%s", err.text);
    cJSON *goldens = cJSON_Parse(text.data);
    assert_non_null(goldens);
    str_done(&text);
    str_done(&path);
    return goldens;
}

#endif
