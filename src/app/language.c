/* Which languages a model was made for, and whether what is asked is written in another script. */
#include "config.h"

#include <string.h>

#include <utf8proc.h>

#include "app/app_private.h"
#include "base/str.h"
#include "base/utf8.h"

/* Languages that are written in Latin letters, by their ISO 639-1 code. A model that names any
 * other one is not spoken about. */
static const struct {
    const char *code, *name;
} latin_languages[] = {
    {"en", "English"},   {"de", "German"},     {"fr", "French"},  {"es", "Spanish"},
    {"it", "Italian"},   {"pt", "Portuguese"}, {"nl", "Dutch"},   {"pl", "Polish"},
    {"cs", "Czech"},     {"sv", "Swedish"},    {"da", "Danish"},  {"no", "Norwegian"},
    {"fi", "Finnish"},   {"ro", "Romanian"},   {"tr", "Turkish"}, {"id", "Indonesian"},
    {"hu", "Hungarian"}, {"vi", "Vietnamese"},
};

enum { LATIN_LAST = 0x24F }; /* the end of Latin Extended-B */

static const char *latin_name(const char *code, size_t len)
{
    for (size_t i = 0; i < sizeof latin_languages / sizeof latin_languages[0]; i++) {
        const char *known = latin_languages[i].code;
        if (strlen(known) == len && strncmp(known, code, len) == 0)
            return latin_languages[i].name;
    }
    return NULL;
}

/* More than half of the letters are none of the Latin ones. */
static bool is_mostly_foreign(const char *text)
{
    size_t len = strlen(text), letters = 0, foreign = 0;
    uint32_t c;

    for (size_t i = 0; i < len;) {
        i += utf8_decode(text + i, len - i, &c, NULL);
        utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
        if (category < UTF8PROC_CATEGORY_LU || category > UTF8PROC_CATEGORY_LO)
            continue;
        letters++;
        foreign += c > LATIN_LAST;
    }
    return foreign * 2 > letters;
}

bool app_names_languages(const char *languages, const char *text, struct str *names)
{
    bool known = languages != NULL && *languages != '\0';

    str_clear(names);
    for (const char *code = languages; known && *code != '\0';) {
        size_t len = strcspn(code, ",");
        const char *name = latin_name(code, len);
        known = name != NULL;
        if (known)
            str_add_format(names, "%s%s", names->len > 0 ? ", " : "", name);
        code += len + (code[len] == ',');
    }
    return known && is_mostly_foreign(text);
}

void app_note_language(struct app *app, const char *text)
{
    struct str names = STR_INIT;

    if (!app->language_noted && app->status.model != NULL &&
        app_names_languages(app->status.model->languages, text, &names)) {
        app->language_noted = true;
        app_say(app, SAY_INFO, "this model was made for %s", str_text(&names));
    }
    str_done(&names);
}
