#include "config.h"

#include "engine/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "engine/sampler.h"

/* ---- texts --------------------------------------------------------------------------------- */

/* Keeps a text as long as the model. Takes `text` over. */
static const char *keep(struct model *m, char *text)
{
    m->strings[m->n_strings++] = text;
    return text;
}

/* The value of a string key as an owned C string (up to its first NUL), or NULL where there is
 * none. */
bool model_read_text(const struct model *m, const char *key, char **text, struct error *err)
{
    struct gguf_string s = {NULL, 0};

    *text = NULL;
    if (!gguf_read_string(m->file, key, false, &s, err))
        return false;
    if (s.text != NULL)
        *text = mem_strndup(s.text, strnlen(s.text, s.len));
    return true;
}

/* Letters and digits after the last '-' or '.' that name a weight type: "Q4_1", "q8_0", "IQ4_XS",
 * "F16", "Q4_K_M", "UD-Q4_K_XL". */
static bool is_type_suffix(const char *text, size_t len)
{
    static const char *const starts[] = {"q", "iq", "tq", "f16", "f32", "bf16", "fp16", "mxfp4"};
    char low[16];

    if (len < 2 || len >= sizeof low)
        return false;
    for (size_t i = 0; i < len; i++)
        low[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
    low[len] = '\0';
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        size_t n = strlen(starts[i]);
        bool quant = n <= 2;
        if (strncmp(low, starts[i], n) == 0 && (quant ? low[n] >= '0' && low[n] <= '9' : n == len))
            return true;
    }
    return false;
}

/* How much of a file's name is the model's: without folder, ".gguf", part number and
 * weight type. */
static char *label_from_path(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t len = strlen(name);

    if (strncmp(name, "sha256-", 7) == 0)
        return NULL; /* a blob of Ollama's: its name says nothing */
    if (len > 5 && strcmp(name + len - 5, ".gguf") == 0)
        len -= 5;
    if (len > 15 && name[len - 15] == '-' && strncmp(name + len - 9, "-of-", 4) == 0)
        len -= 15;
    for (size_t at = len; at > 1; at--) {
        if (name[at - 1] != '-' && name[at - 1] != '.')
            continue;
        if (is_type_suffix(name + at, len - at))
            len = at - 1;
        break;
    }
    return len > 0 ? mem_strndup(name, len) : NULL;
}

/* From the file's name, else from what the file says of itself. */
static bool read_label(struct model *m, struct error *err)
{
    char *label = label_from_path(m->info.path), *name = NULL, *base = NULL, *size = NULL;
    bool ok = model_read_text(m, "general.name", &name, err) &&
              model_read_text(m, "general.basename", &base, err) &&
              model_read_text(m, "general.size_label", &size, err);
    struct str s = STR_INIT;

    if (label != NULL)
        str_add_text(&s, label);
    else if (name != NULL && *name != '\0')
        str_add_text(&s, name);
    else if (base != NULL && *base != '\0')
        str_add_format(&s, "%s%s%s", base, size != NULL ? "-" : "", size != NULL ? size : "");
    else
        str_add_text(&s, m->info.arch);
    m->info.label = keep(m, str_steal(&s));
    free(label);
    free(name);
    free(base);
    free(size);
    return ok;
}

static bool read_languages(struct model *m, struct error *err)
{
    struct gguf_array list = {.n = 0};
    struct gguf_string s;
    struct str joined = STR_INIT;
    bool ok = gguf_read_array(m->file, "general.languages", false, GGUF_STRING, &list, err);

    while (gguf_next_string(&list, &s)) {
        if (joined.len > 0)
            str_add_char(&joined, ',');
        str_add(&joined, s.text, strnlen(s.text, s.len));
    }
    m->info.languages = keep(m, str_steal(&joined));
    return ok;
}

static bool read_texts(struct model *m, struct error *err)
{
    char *tmpl, *tokenizer;

    if (!read_label(m, err) || !read_languages(m, err) ||
        !model_read_text(m, "tokenizer.chat_template", &tmpl, err))
        return false;
    m->info.chat_template = keep(m, tmpl);
    if (!model_read_text(m, "tokenizer.ggml.model", &tokenizer, err))
        return false;
    m->info.tokenizer = keep(m, tokenizer != NULL ? tokenizer : mem_strdup("none"));
    return true;
}

/* ---- the file's own sampling defaults ------------------------------------------------------ */

/* Most files hold them as f32, in which 0.6 is 0.60000002: what was meant is the shortest number
 * that is the same f32. */
static double meant_number(double value)
{
    char text[32];

    for (int digits = 1; digits <= 9 && (double)(float)value == value; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double shorter = strtod(text, NULL);
        if ((float)shorter == (float)value)
            return shorter;
    }
    return value;
}

static bool read_sampling(struct model *m, struct error *err)
{
    static const struct {
        enum knob knob;
        const char *key;
    } keys[] = {
        {KNOB_REPETITION_PENALTY, "general.sampling.penalty_repeat"},
        {KNOB_TEMPERATURE, "general.sampling.temp"},
        {KNOB_TOP_K, "general.sampling.top_k"},
        {KNOB_TOP_P, "general.sampling.top_p"},
        {KNOB_MIN_P, "general.sampling.min_p"},
        {KNOB_REPEAT_LAST_N, "general.sampling.penalty_last_n"},
    };

    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        double *value = &m->info.sampling[keys[k].knob];
        m->info.has_sampling[keys[k].knob] = gguf_has_key(m->file, keys[k].key);
        if (!gguf_read_number(m->file, keys[k].key, false, -1e9, 1e9, value, err))
            return false;
        *value = meant_number(*value);
    }
    return true;
}

bool model_read_meta(struct model *m, struct error *err)
{
    return read_texts(m, err) && read_sampling(m, err);
}
