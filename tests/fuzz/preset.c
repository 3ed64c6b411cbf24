/* Presets, ours and other programs': read, written and read again, which changes nothing more. */
#include "config.h"

#include "fuzz/fuzz.h"

#include <string.h>

#include "config/preset.h"

const uint64_t fuzz_test_runs = 20000;

bool fuzz_seed(size_t i, struct str *out)
{
    static const char *const texts[] = {
        "description: Rhymes, when they come.\nsystem: |\n  You are a poet.\n  You rhyme.\n"
        "temperature: 1.15\ntop_k: 0\ntop_p: 0.95\nmin_p: 0.05\ntypical_p: 1\n"
        "repeat_penalty: 1.1\nrepeat_last_n: 256\npresence_penalty: 0.2\nfrequency_penalty: 0.1\n"
        "seed: 42\nmax_tokens: 400\norder: [penalties, top_k, typical, top_p, min_p, temperature]\n"
        "exempt: punctuation\ntry:\n  - A poem about rain\n  - \"Another: about tin roofs\"\n",
        "name: \"loop: \\u00e9\"\ntemperature: 0\nseed: -1\ntry: ['once', \"twice\\n\"]\n",
        "temperature: 0.7\ntop_p: 0.9\ntop_k: 20\nrepetition_penalty: 1.15\ntypical_p: 1\n"
        "guidance_scale: 1\nmin_p: 0.05\n",
        "{\"temp\": 0.8, \"top_p\": 0.9, \"top_k\": 40, \"rep_pen\": 1.1, \"rep_pen_range\": 1024,"
        " \"sampler_order\": [6, 0, 1, 3, 4, 2, 5]}\n",
        "{\"do_sample\": true, \"temperature\": 0.6, \"top_p\": 0.95, \"eos_token_id\": [1, 2]}\n",
        "FROM llama3\n# a comment\nPARAMETER temperature 0.5\nPARAMETER stop \"<|im_end|>\"\n"
        "SYSTEM \"\"\"You are a pirate.\nArr.\"\"\"\n",
        "--temp 0.7 --top-k 50 --top-p 0.9 --repeat-penalty 1.1 -s 7 -n 128\n",
    };

    if (i >= sizeof texts / sizeof *texts)
        return false;
    str_add_text(out, texts[i]);
    return true;
}

static void check(struct preset *p, const struct error *err)
{
    struct str once = STR_INIT, twice = STR_INIT;
    struct error why = {""};

    if (p == NULL) {
        fuzz_check_error(err);
        return;
    }
    preset_format(p, &once);
    struct preset *again = preset_load_file(fuzz_file(1, str_text(&once), once.len), NULL, &why);
    if (again == NULL)
        fprintf(stderr, "%s\n%s", why.text, str_text(&once));
    FUZZ_CHECK(again != NULL);
    preset_format(again, &twice);
    if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
        fprintf(stderr, "---- once\n%s---- twice\n%s", str_text(&once), str_text(&twice));
    FUZZ_CHECK(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
    preset_free(again);
    preset_free(p);
    str_done(&once);
    str_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(0, data, size);
    struct preset_warnings warnings = {NULL, 0, 0};
    struct error err = {""};

    check(preset_load_file(path, &warnings, &err), &err);
    check(preset_import(path, &warnings, &err), &err);
    preset_warnings_done(&warnings);
    return 0;
}
