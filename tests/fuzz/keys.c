/* Bytes from the terminal: the same events however they are split, and pasted text that is clean. */
#include "config.h"

#include "fuzz/fuzz.h"

#include <string.h>

#include "base/utf8.h"
#include "tui/decoder.h"

#define MS ((int64_t)1000000)

const uint64_t fuzz_test_runs = 20000;

bool fuzz_seed(size_t i, struct str *out)
{
    static const char *const texts[] = {
        "abc\r\n\t\177 \030\005 \030\033[A\033[B caf\303\251 \344\270\255 \360\237\230\200",
        "\033[A\033OP\033[1;5A\033[3~\033[24;6~\033[[A\033[Z\033\033[C\033a\033\r",
        "\033[<0;10;5M\033[<32;11;6M\033[<0;11;6m\033[<64;1;1M\033[M !!\033[M#\"\"",
        "\033[200~pasted\r\ntext \033[31m \377\t\033[201~after",
        "\033[?2026;2$y\033[12;40R\033]11;rgb:0000/0000/0000\007\033P1+r\033\\\033[?62;4c",
        "\033[27;5;13~\033[13;2u\033[97;5u\033[57399u",
    };

    if (i >= sizeof texts / sizeof *texts)
        return false;
    str_add_text(out, texts[i]);
    return true;
}

static void check_text(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        FUZZ_CHECK((c >= ' ' && c != 127) || c == '\n' || c == '\t');
    }
    FUZZ_CHECK(utf8_is_valid(text, len));
}

static void take_events(struct decoder *d, struct str *out)
{
    struct term_event e;

    while (decoder_next(d, &e)) {
        FUZZ_CHECK(e.raw_len <= TERM_RAW_MAX);
        str_add_format(out, "%d %d ", (int)e.kind, e.kind == TERM_KEY ? e.key : 0);
        if (e.kind == TERM_KEY)
            str_add(out, (const char *)e.raw, e.raw_len);
        if (e.kind == TERM_MOUSE)
            str_add_format(out, "%d %d %d %d %d %d", e.mouse.x, e.mouse.y, e.mouse.button,
                           (int)e.mouse.kind, e.mouse.clicks, e.mouse.mods);
        if (e.kind == TERM_REPLY)
            str_add_format(out, "%d %d %d", (int)e.reply, e.reply_a, e.reply_b);
        if (e.kind == TERM_PASTE) {
            check_text(e.text, e.len);
            str_add(out, e.text, e.len);
        }
        str_add_char(out, '\n');
    }
}

/* `step` bytes at a time; then time passes until nothing is waited for. */
static void decode(const uint8_t *data, size_t size, size_t step, struct str *out)
{
    static const struct decoder_options options = {.escape_ns = 25 * MS};
    struct decoder d;
    int64_t now = 1000 * MS;

    decoder_init(&d, &options);
    for (size_t at = 0; at < size; at += step) {
        decoder_feed(&d, (const char *)data + at, size - at < step ? size - at : step, now);
        take_events(&d, out);
    }
    for (int i = 0; decoder_deadline(&d) != INT64_MAX; i++) {
        FUZZ_CHECK(i < 100);
        now = decoder_deadline(&d) + 1;
        decoder_expire(&d, now);
    }
    take_events(&d, out);
    decoder_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str whole = STR_INIT, split = STR_INIT;
    size_t steps[] = {1, 2, 3, 7};

    if (size == 0)
        return 0;
    decode(data, size, size, &whole);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        str_clear(&split);
        decode(data, size, steps[i], &split);
        FUZZ_CHECK(whole.len == split.len &&
                   memcmp(str_text(&whole), str_text(&split), whole.len) == 0);
    }
    str_done(&whole);
    str_done(&split);
    return 0;
}
