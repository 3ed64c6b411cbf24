#include "config.h"

#include "cli/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* What stands between two NULs, escaped by cJSON, without its quotes. cJSON lets DEL and the
 * control characters above ASCII through, and terminals obey those. */
static void add_escaped(struct str *out, const char *text, size_t len)
{
    char *part = mem_strndup(text, len);
    cJSON *string = cJSON_CreateStringReference(part);
    char *quoted = cJSON_PrintUnformatted(string);

    for (const char *at = quoted + 1; at[1] != '\0'; at++) {
        unsigned char c = (unsigned char)at[0], next = (unsigned char)at[1];
        if (c == 0x7F)
            str_add_text(out, "\\u007f");
        else if (c == 0xC2 && next < 0xA0)
            str_add_format(out, "\\u%04x", *(const unsigned char *)++at);
        else
            str_add_char(out, at[0]);
    }
    cJSON_free(quoted);
    cJSON_Delete(string);
    free(part);
}

void json_add_text(cJSON *object, const char *key, const char *text, size_t len)
{
    struct str raw = STR_INIT;

    str_add_char(&raw, '"');
    for (;;) {
        const char *nul = len > 0 ? memchr(text, '\0', len) : NULL;
        size_t part = nul != NULL ? (size_t)(nul - text) : len;
        if (part > 0)
            add_escaped(&raw, text, part);
        if (nul == NULL)
            break;
        str_add_text(&raw, "\\u0000");
        text += part + 1;
        len -= part + 1;
    }
    str_add_char(&raw, '"');
    cJSON_AddRawToObject(object, key, raw.data);
    str_done(&raw);
}

void json_add_bytes(cJSON *object, const char *bytes, size_t len)
{
    cJSON *array = cJSON_AddArrayToObject(object, "bytes");

    for (size_t i = 0; i < len; i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber((unsigned char)bytes[i]));
}

void json_print_line(cJSON *object)
{
    char *text = cJSON_PrintUnformatted(object);

    puts(text);
    cJSON_free(text);
    cJSON_Delete(object);
}
