#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "engine/tokenizer_impl.h"
#include "folder.h"
#include "tiny_gguf.h"

/* ---- making tokenizers --------------------------------------------------------------------- */

/* The file of `bytes`, opened; it is gone from its folder afterwards. Empties `bytes`. */
static struct gguf *open_bytes(struct str *bytes)
{
    struct error err;
    char path[64];

    snprintf(path, sizeof path, "%s/x.gguf", folder);
    assert_true(tiny_save(path, bytes));
    str_done(bytes);
    struct gguf *g = gguf_open(path, &err);
    unlink(path);
    if (g == NULL)
        fail_msg("%s", err.text);
    return g;
}

/* A vocabulary by hand: every byte, then `extra` tokens with their kinds, and merges. */
struct by_hand {
    const char *extra[24];
    int32_t kinds[24];
    const char *merges[24];
    const char *pre;
    bool no_merges, add_bos;
    int32_t bos;        /* 0: none */
    size_t short_kinds; /* leave so many token types out */
};

static size_t count(const char *const *texts)
{
    size_t n = 0;

    while (texts[n] != NULL)
        n++;
    return n;
}

static void add_by_hand(struct tiny_writer *w, const struct by_hand *v)
{
    char bytes[256][4];
    const char *tokens[300];
    int32_t kinds[300];
    size_t n = 256, extra = count(v->extra);

    for (unsigned b = 0; b < 256; b++) {
        tiny_byte_text(b, bytes[b]);
        tokens[b] = bytes[b];
        kinds[b] = TOKEN_NORMAL;
    }
    for (size_t i = 0; i < extra; i++, n++) {
        tokens[n] = v->extra[i];
        kinds[n] = v->kinds[i] != 0 ? v->kinds[i] : TOKEN_NORMAL;
    }
    tiny_add_text(w, "general.architecture", "llama");
    tiny_add_text(w, "tokenizer.ggml.model", "gpt2");
    if (v->pre != NULL)
        tiny_add_text(w, "tokenizer.ggml.pre", v->pre);
    tiny_add_texts(w, "tokenizer.ggml.tokens", tokens, n);
    tiny_add_ints(w, "tokenizer.ggml.token_type", kinds, n - v->short_kinds);
    if (!v->no_merges)
        tiny_add_texts(w, "tokenizer.ggml.merges", v->merges, count(v->merges));
    if (v->bos > 0)
        tiny_add_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)v->bos);
    if (v->add_bos)
        tiny_add_bool(w, "tokenizer.ggml.add_bos_token", true);
}

static struct tokenizer *try_by_hand(const struct by_hand *v, struct error *err)
{
    struct tiny_writer w = TINY_WRITER_INIT;
    struct str bytes = STR_INIT;

    add_by_hand(&w, v);
    tiny_finish(&w, &bytes);
    struct gguf *g = open_bytes(&bytes);
    struct tokenizer *t = tokenizer_new(g, (int32_t)(256 + count(v->extra)), err);
    gguf_close(g);
    return t;
}

static struct tokenizer *by_hand(const struct by_hand *v)
{
    struct error err;
    struct tokenizer *t = try_by_hand(v, &err);

    if (t == NULL)
        fail_msg("%s", err.text);
    return t;
}

/* ---- encoding in a line -------------------------------------------------------------------- */

static struct span as_text(const char *text)
{
    return (struct span){SPAN_TEXT, text, strlen(text), NULL, 0};
}

static struct span as_markup(const char *text)
{
    return (struct span){SPAN_MARKUP, text, strlen(text), NULL, 0};
}

/* The tokens of `spans` with a bar between: "He|ll|o". */
static const char *pieces(const struct tokenizer *t, const struct span *spans, size_t n,
                          unsigned flags)
{
    static char out[4096];
    struct token_list list = {NULL, 0, 0};
    struct str s = STR_INIT;
    size_t len;

    tokenizer_encode(t, spans, n, flags, &list);
    for (size_t i = 0; i < list.n; i++) {
        const char *piece = tokenizer_piece(t, list.ids[i], &len);
        if (i > 0)
            str_add_char(&s, '|');
        str_add(&s, piece, len);
    }
    snprintf(out, sizeof out, "%s", str_text(&s));
    str_done(&s);
    token_list_done(&list);
    return out;
}

static const char *text_pieces(const struct tokenizer *t, const char *text)
{
    struct span span = as_text(text);

    return pieces(t, &span, 1, 0);
}

static const char *markup_pieces(const struct tokenizer *t, const char *text)
{
    struct span span = as_markup(text);

    return pieces(t, &span, 1, 0);
}

static void decode(const struct tokenizer *t, const struct token_list *list, struct str *out)
{
    size_t len;

    for (size_t i = 0; i < list->n; i++) {
        const char *piece = tokenizer_piece(t, list->ids[i], &len);
        str_add(out, piece, len);
    }
}

static void assert_comes_back(const struct tokenizer *t, const char *bytes, size_t n)
{
    struct span span = {SPAN_TEXT, bytes, n, NULL, 0};
    struct token_list list = {NULL, 0, 0};
    struct str out = STR_INIT;

    tokenizer_encode(t, &span, 1, 0, &list);
    decode(t, &list, &out);
    assert_int_equal(out.len, n);
    if (n > 0)
        assert_memory_equal(out.data, bytes, n);
    token_list_done(&list);
    str_done(&out);
}

/* ---- words --------------------------------------------------------------------------------- */

static void add_word(void *ctx, const char *word, size_t len)
{
    struct str *s = ctx;

    if (s->len > 0)
        str_add_char(s, '|');
    str_add(s, word, len);
}

static void assert_words(const char *pre, const char *text, const char *wanted)
{
    struct error err;
    struct str s = STR_INIT;
    struct splitter *splitter = splitter_new(pre_tokenizer_find(pre, strlen(pre)), &err);

    assert_non_null(splitter);
    splitter_run(splitter, text, strlen(text), add_word, &s);
    assert_string_equal(str_text(&s), wanted);
    str_done(&s);
    splitter_free(splitter);
}

static void test_words(void **state)
{
    (void)state;
    assert_words("gpt-2", "Hello  world 123!!", "Hello| | world| 123|!!");
    assert_words("gpt-2", "I'LL we'll", "I|'|LL| we|'ll");
    assert_words("gpt-2", "a\n\n b  ", "a|\n\n| b|  ");
    assert_words("smollm", "x 123", "x| |1|2|3");
    assert_words("smollm", "a  5", "a|  |5"); /* the text before a digit ends there */
    assert_words("llama-bpe", "I'LL 12345 x\n\ny", "I|'LL| |123|45| x|\n\n|y");
    assert_words("llama-bpe", "(foo)!\n", "(foo|)!\n");
    assert_words("qwen2", "I'll 123", "I|'ll| |1|2|3");
    assert_words("default", "a+b= 1234", "a|+|b|=| |123|4");
    assert_words("gpt-2",
                 "a\xff"
                 "b \xe4\xbd",
                 "a|\xff|b| |\xe4\xbd");
    assert_words("gpt-2",
                 "a\xe1\xa0\x8e"
                 "b",
                 "a|\xe1\xa0\x8e|b"); /* U+180E is no space */
    assert_words("gpt-2", "a \xc2\x85 b", "a| \xc2\x85| b");
    assert_words("gpt-2", "", "");
    assert_null(pre_tokenizer_find("smol", 4));
    assert_null(pre_tokenizer_find("", 0));
}

/* ---- merges -------------------------------------------------------------------------------- */

static void test_merges(void **state)
{
    struct by_hand v = {.extra = {"ab", "bc", "abc", "aa", "aaaa", "cd"},
                        .merges = {"b c", "a b", "a bc", "a a", "aa aa", "c d"},
                        .pre = "gpt-2"};
    struct tokenizer *t;
    (void)state;

    t = by_hand(&v);
    assert_string_equal(text_pieces(t, "abc"), "abc"); /* b c first, then a bc */
    assert_string_equal(text_pieces(t, "abd"), "ab|d");
    assert_string_equal(text_pieces(t, "aaaaaaa"), "aaaa|aa|a"); /* the leftmost of equals */
    assert_string_equal(text_pieces(t, "bcd"), "bc|d"); /* the better rank, not the longer way */
    assert_string_equal(text_pieces(t, "xyz"), "x|y|z");
    tokenizer_free(t);

    v.merges[0] = "a b";
    v.merges[1] = "b c";
    v.merges[2] = "a b"; /* again: the better place counts */
    t = by_hand(&v);
    assert_string_equal(text_pieces(t, "abcd"), "ab|cd");
    tokenizer_free(t);

    v.merges[0] = "x y"; /* whose sum is no token */
    t = by_hand(&v);
    assert_string_equal(text_pieces(t, "xy"), "x|y");
    assert_string_equal(text_pieces(t, "abc"), "a|bc");
    tokenizer_free(t);
}

static void test_whole_words(void **state)
{
    struct by_hand v = {.extra = {"ab", "bc", "abc"}, .merges = {"a b"}, .pre = "gpt-2"};
    (void)state;

    struct tokenizer *t = by_hand(&v);
    assert_string_equal(text_pieces(t, "abc"), "ab|c");
    tokenizer_free(t);
    v.pre = "llama-bpe";
    t = by_hand(&v);
    assert_string_equal(text_pieces(t, "abc"), "abc");
    tokenizer_free(t);
}

/* ---- a text that goes on --------------------------------------------------------------------- */

/* The tokens of a text that is not at its end yet are the first of those of the whole, and at most
 * `held` bytes of it wait. */
static void assert_opens(const struct tokenizer *t, const char *text, size_t len, size_t held)
{
    const struct span whole = {SPAN_TEXT, text, strlen(text), NULL, 0};
    const struct span open = {SPAN_TEXT, text, len, NULL, 0};
    struct token_list all = {NULL, 0, 0}, first = {NULL, 0, 0};
    struct str bytes = STR_INIT;

    tokenizer_encode(t, &whole, 1, 0, &all);
    tokenizer_encode(t, &open, 1, TOKENIZE_OPEN, &first);
    assert_true(first.n <= all.n);
    if (first.n > 0)
        assert_memory_equal(first.ids, all.ids, first.n * sizeof *first.ids);
    decode(t, &first, &bytes);
    assert_true(bytes.len <= len && len - bytes.len <= held);
    str_done(&bytes);
    token_list_done(&all);
    token_list_done(&first);
}

static void test_open_at_every_byte(void **state)
{
    static const char *const kinds[] = {"gpt-2",     "smollm", "llama-bpe",
                                        "smaug-bpe", "qwen2",  "default"};
    static const char *const texts[] = {
        "I'll say it's 12345 words,  \n\n  and we've\tall 'LL' seen--them!!\n\n\nx=3.14;  y",
        "'re 're're '''ve l'l ll' d'd 's",
        "   \n \t\r\n  a  b   c    d     ",
        "中文，和 English 混合。12 三",
        "a\xff b \xe4\xbd\xa0 \xf0\x9f\x98\x80 e\xcc\x81",
    };
    struct by_hand v = {
        .extra = {"re", "ve", "ll", "'s", "'re", "'ve", "'ll", "12", "123", "Ġa", "--", "ĊĊ", "ĠĠ"},
        .merges = {"r e", "v e", "l l", "' s", "' re", "' ve", "' ll", "1 2", "12 3", "Ġ a", "- -",
                   "Ċ Ċ", "Ġ Ġ"}};
    (void)state;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        v.pre = kinds[k];
        struct tokenizer *t = by_hand(&v);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            for (size_t len = 0; len <= strlen(texts[i]); len++)
                assert_opens(t, texts[i], len, 24);
        }
        tokenizer_free(t);
    }
}

static void test_open_spans(void **state)
{
    static const struct by_hand v = {.extra = {"<s>", "he"},
                                     .kinds = {TOKEN_CONTROL, TOKEN_NORMAL},
                                     .merges = {"h e"},
                                     .pre = "gpt-2"};
    static const int32_t ids[] = {'x', 'y'};
    struct span spans[] = {as_markup("ab"), as_text(" cd ef"), as_text(" gh")};
    struct tokenizer *t = by_hand(&v);
    (void)state;

    assert_string_equal(pieces(t, spans, 2, TOKENIZE_OPEN), "a|b");
    assert_string_equal(pieces(t, spans, 3, TOKENIZE_OPEN), "a|b| |c|d");
    spans[0] = as_markup("ab<s>"); /* nothing changes what stands before a special token */
    assert_string_equal(pieces(t, spans, 1, TOKENIZE_OPEN), "a|b|<s>");
    spans[0] = (struct span){SPAN_TOKENS, NULL, 0, ids, 2};
    assert_string_equal(pieces(t, spans, 3, TOKENIZE_OPEN), "x|y| |c|d");
    spans[2] = spans[0]; /* nor before ids */
    assert_string_equal(pieces(t, spans, 3, TOKENIZE_OPEN), "x|y| |c|d| |e|f|x|y");
    tokenizer_free(t);
}

/* ---- special tokens ------------------------------------------------------------------------ */

static void test_specials(void **state)
{
    static const struct by_hand v = {
        .extra = {"<s>", "<s>>", "<tool>", "<unk>", "he", "<|im_end|>", "</s>", "<end_of_turn>"},
        .kinds = {TOKEN_CONTROL, TOKEN_CONTROL, TOKEN_USER_DEFINED, TOKEN_UNKNOWN, TOKEN_NORMAL,
                  TOKEN_NORMAL, TOKEN_NORMAL, TOKEN_USER_DEFINED},
        .merges = {"h e"},
        .pre = "gpt-2"};
    struct span spans[4];
    (void)state;

    struct tokenizer *t = by_hand(&v);
    assert_string_equal(text_pieces(t, "a<s>he"), "a|<|s|>|he");
    assert_string_equal(markup_pieces(t, "a<s>he"), "a|<s>|he");
    assert_string_equal(markup_pieces(t, "<s>>><s>"), "<s>>|>|<s>"); /* the longest */
    assert_string_equal(markup_pieces(t, "<s<s>"), "<|s|<s>");
    assert_string_equal(text_pieces(t, "<tool>he"), "<tool>|he");
    assert_string_equal(text_pieces(t, "<unk>"), "<|u|n|k|>");
    assert_string_equal(markup_pieces(t, "<unk>"), "<unk>");
    assert_string_equal(text_pieces(t, "<|im_end|>"), "<|||i|m|_|e|n|d|||>");
    assert_string_equal(markup_pieces(t, "<|im_end|>"), "<|im_end|>");

    spans[0] = as_markup("<"); /* no token half trusted */
    spans[1] = as_text("s>");
    assert_string_equal(pieces(t, spans, 2, 0), "<|s|>");
    spans[0] = as_text("<s");
    spans[1] = as_markup(">");
    assert_string_equal(pieces(t, spans, 2, 0), "<|s|>");
    spans[0] = as_markup("<s"); /* but two spans of markup are one */
    spans[1] = as_markup(">");
    assert_string_equal(pieces(t, spans, 2, 0), "<s>");
    spans[0] = as_markup("<s>h"); /* and a word crosses */
    spans[1] = as_text("e<s>");
    spans[2] = as_markup("<s>>");
    assert_string_equal(pieces(t, spans, 3, 0), "<s>|he|<|s|>|<s>>");
    spans[2] = as_markup("<s>"); /* not even its longer kin */
    spans[3] = as_text(">");
    assert_string_equal(pieces(t, spans, 4, 0), "<s>|he|<|s|>|<s>|>");

    assert_true(tokenizer_is_control(t, 256));
    assert_true(tokenizer_is_control(t, 259));
    assert_false(tokenizer_is_control(t, 258));
    assert_true(tokenizer_is_eog(t, 261)); /* by its text, whatever its type says */
    assert_false(tokenizer_is_eog(t, 256));
    assert_false(tokenizer_is_eog(t, 262)); /* an ordinary word of this vocabulary */
    assert_true(tokenizer_is_eog(t, 263));
    assert_string_equal(text_pieces(t, "<end_of_turn>"), "<|e|n|d|_|o|f|_|t|u|r|n|>");
    assert_int_equal(tokenizer_find(t, "<s>"), 256);
    assert_int_equal(tokenizer_find(t, "he"), 260);
    assert_int_equal(tokenizer_find(t, "zz"), -1);
    assert_int_equal(tokenizer_find(t, ""), -1);
    tokenizer_free(t);
}

static void test_tokens_span(void **state)
{
    static const struct by_hand v = {.extra = {"he"}, .merges = {"h e"}, .pre = "gpt-2"};
    int32_t ids[] = {'e', 256};
    (void)state;

    struct tokenizer *t = by_hand(&v);
    struct span spans[] = {as_text("h"), {SPAN_TOKENS, NULL, 0, ids, 2}, as_text("e")};
    assert_string_equal(pieces(t, spans, 3, 0), "h|e|he|e");
    tokenizer_free(t);
}

static void test_bos(void **state)
{
    struct by_hand v = {
        .extra = {"<s>"}, .kinds = {TOKEN_CONTROL}, .pre = "gpt-2", .bos = 256, .add_bos = true};
    struct span spans[2];
    (void)state;

    struct tokenizer *t = by_hand(&v);
    spans[0] = as_text("hi");
    assert_string_equal(pieces(t, spans, 1, TOKENIZE_BOS), "<s>|h|i");
    assert_string_equal(pieces(t, spans, 1, 0), "h|i");
    assert_string_equal(pieces(t, spans, 0, TOKENIZE_BOS), "<s>");
    spans[0] = as_markup("<s>hi");
    assert_string_equal(pieces(t, spans, 1, TOKENIZE_BOS), "<s>|h|i");
    assert_int_equal(tokenizer_bos(t), 256);
    tokenizer_free(t);

    v.add_bos = false;
    t = by_hand(&v);
    spans[0] = as_text("hi");
    assert_string_equal(pieces(t, spans, 1, TOKENIZE_BOS), "h|i");
    tokenizer_free(t);

    v.pre = "llama-bpe"; /* adds it where the file is silent */
    t = by_hand(&v);
    assert_string_equal(pieces(t, spans, 1, TOKENIZE_BOS), "<s>|h|i");
    tokenizer_free(t);
}

/* ---- any bytes ----------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
    static const struct by_hand v = {.extra = {"\xc4\xa0\xc4\xa0", "ab"},
                                     .merges = {"\xc4\xa0 \xc4\xa0", "a b"}};
    static const char *const pres[] = {"smollm", "gpt-2", "llama-bpe", "qwen2", NULL};
    char bytes[64];
    uint32_t random = 1;
    (void)state;

    for (size_t p = 0; p < sizeof pres / sizeof pres[0]; p++) {
        struct by_hand with = v;
        with.pre = pres[p];
        struct tokenizer *t = by_hand(&with);
        assert_comes_back(t, "", 0);
        assert_comes_back(t, "a\0b  \0", 6);
        assert_comes_back(t, "\xef\xbf\xbd\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf\xe4\xbd", 14);
        for (int round = 0; round < 2000; round++) {
            size_t n = (random >> 8) % sizeof bytes;
            for (size_t i = 0; i < n; i++) {
                random = random * 1664525 + 1013904223;
                bytes[i] =
                    (random & 0x100) != 0 ? (char)(random >> 24) : " ab1'\n\xe4\xff"[random >> 29];
            }
            random = random * 1664525 + 1013904223;
            assert_comes_back(t, bytes, n);
        }
        tokenizer_free(t);
    }
}

/* A word as long as the text: time that grew with its square would not end. */
static void test_long_words(void **state)
{
    static const struct by_hand v = {.extra = {"\xc4\xa0\xc4\xa0", "ab", "abab"},
                                     .merges = {"\xc4\xa0 \xc4\xa0", "a b", "ab ab"},
                                     .pre = "qwen2"};
    enum { LONG = 1 << 20 };
    char *text = mem_alloc(LONG);
    (void)state;

    struct tokenizer *t = by_hand(&v);
    memset(text, ' ', LONG);
    assert_comes_back(t, text, LONG);
    text[LONG - 1] = 'x';
    assert_comes_back(t, text, LONG);
    for (size_t i = 0; i < LONG; i++)
        text[i] = "ab"[i & 1];
    assert_comes_back(t, text, LONG);
    memset(text, 0xE4, LONG);
    assert_comes_back(t, text, LONG);
    memset(text, '<', LONG);
    assert_comes_back(t, text, LONG);
    tokenizer_free(t);
    free(text);
}

static void test_missing_bytes(void **state)
{
    const char *model = test_model();
    struct error err;
    (void)state;

    if (model == NULL)
        skip();
    struct model *m = model_open(model, &err);
    assert_non_null(m);
    const struct tokenizer *t = model_tokenizer(m, &err);
    assert_non_null(t);
    assert_ptr_equal(t, model_tokenizer(m, &err)); /* built once */
    assert_string_equal(text_pieces(t, "a\xff"
                                       "b\x04"),
                        "a|\xef\xbf\xbd|b"); /* it has no 0xFF and no 0x04 */
    assert_string_equal(text_pieces(t, "\xff\xfe"), "\xef\xbf\xbd|\xef\xbf\xbd");
    assert_string_equal(text_pieces(t, "\xf1\x80\x80\x80"), "\x80|\x80|\x80"); /* U+40000 */
    assert_comes_back(t, "caf\xc3\xa9 \xe4\xbd\xa0\r\n \xe4\xbd", 14);
    assert_int_equal(tokenizer_eos(t), 2);
    model_close(m);
}

/* ---- punctuation --------------------------------------------------------------------------- */

static bool exempt(const struct tokenizer *t, const char *text)
{
    int32_t id = tokenizer_find(t, text);

    if (id < 0)
        fail_msg("no token '%s'", text);
    return tokenizer_punctuation(t)[id] != 0;
}

static void test_punctuation(void **state)
{
    static const struct by_hand v = {.extra = {"<s>", "\xc3\xa2\xc4\xa2\xc4\xb0" /* e2 80 8e */,
                                               "\xc3\xa3\xc4\xa2\xc4\xa4" /* 。*/, "\xc4\xa0,",
                                               "\xc4\xa0"
                                               "a",
                                               "\xc3\xa4\xc2\xbd\xc5\x82" /* 你 */,
                                               "\xc4\xa0\xc3\xa4", "a\xc3\xa4",
                                               "\xc3\x8c\xc4\xa3" /* a combining mark */},
                                     .kinds = {TOKEN_CONTROL},
                                     .pre = "gpt-2"};
    (void)state;

    struct tokenizer *t = by_hand(&v);
    assert_true(exempt(t, "."));
    assert_true(exempt(t, "\n"));
    assert_true(exempt(t, "$"));
    assert_true(exempt(t, "<s>"));
    assert_true(exempt(t, "\xe3\x80\x82"));
    assert_true(exempt(t, " ,"));
    assert_true(exempt(t, "\xe4")); /* part of a character */
    assert_true(exempt(t, " \xe4"));
    assert_false(exempt(t, "\xe2\x80\x8e")); /* Cf is not among them */
    assert_false(exempt(t, "a\xe4"));
    assert_false(exempt(t, "a"));
    assert_false(exempt(t, "7"));
    assert_false(exempt(t, " a"));
    assert_false(exempt(t, "\xe4\xbd\xa0"));
    assert_false(exempt(t, "\xcc\x81"));
    tokenizer_free(t);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void assert_refused(const struct by_hand *v, const char *why)
{
    struct error err = {""};
    struct tokenizer *t = try_by_hand(v, &err);

    assert_null(t);
    if (strstr(err.text, why) == NULL || strstr(err.text, "x.gguf: ") == NULL)
        fail_msg("'%s' does not say '%s' and the file", err.text, why);
}

static void test_refusals(void **state)
{
    struct by_hand v;
    (void)state;

    v = (struct by_hand){.pre = "tekken"};
    assert_refused(&v, "pre-tokenizer 'tekken' is not supported yet");
    v = (struct by_hand){.extra = {"ab", "ab"}};
    assert_refused(&v, "tokens 256 and 257 have the same text");
    v = (struct by_hand){.extra = {"<s>", "<s>"}, .kinds = {TOKEN_CONTROL, TOKEN_USER_DEFINED}};
    assert_refused(&v, "tokens 256 and 257 have the same text");
    v = (struct by_hand){.no_merges = true};
    assert_refused(&v, "tokenizer.ggml.merges is missing");
    v = (struct by_hand){.merges = {"a b", "ab"}};
    assert_refused(&v, "merge 1 is not two texts");
    v = (struct by_hand){.merges = {" b"}};
    assert_refused(&v, "merge 0 is not two texts");
    v = (struct by_hand){.merges = {"b "}};
    assert_refused(&v, "merge 0 is not two texts");
    v = (struct by_hand){.short_kinds = 1};
    assert_refused(&v, "255 token types for 256 tokens");
}

static void test_other_kinds(void **state)
{
    static const struct {
        const char *name, *why;
    } kinds[] = {
        {"llama", "tokenizer 'llama' (SentencePiece) is not supported yet"},
        {"bert", "tokenizer 'bert' (WordPiece) is not supported yet"},
        {"nonsense", "tokenizer 'nonsense' is not supported yet"},
        {"none", "the file has no tokenizer"},
    };
    char path[64];
    struct error err;
    (void)state;

    snprintf(path, sizeof path, "%s/tiny.gguf", folder);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct tiny_gguf_options o = {.tokenizer = kinds[i].name};
        assert_true(tiny_gguf_write(path, &o));
        struct model *m = model_open(path, &err); /* bench and ledger need no tokenizer */
        assert_non_null(m);
        assert_null(model_tokenizer(m, &err));
        if (strstr(err.text, kinds[i].why) == NULL)
            fail_msg("%s", err.text);
        model_close(m);
    }
    unlink(path);
}

static void test_strange_ids(void **state)
{
    static const struct by_hand v = {.extra = {"\xe4\xbd\xa0" /* not of the alphabet */, ""},
                                     .pre = "gpt-2",
                                     .bos = 1000000,
                                     .add_bos = true};
    size_t len = 7;
    struct span span = as_text("\xe4\xbd\xa0");
    (void)state;

    struct tokenizer *t = by_hand(&v);
    assert_int_equal(tokenizer_bos(t), -1);
    assert_string_equal(pieces(t, &span, 1, TOKENIZE_BOS), "\xe4|\xbd|\xa0");
    assert_string_equal(tokenizer_piece(t, -1, &len), "");
    assert_int_equal(len, 0);
    assert_string_equal(tokenizer_piece(t, 258, &len), "");
    assert_false(tokenizer_is_eog(t, 258));
    assert_false(tokenizer_is_control(t, -1));
    tokenizer_free(t);
}

/* ---- detokenizing -------------------------------------------------------------------------- */

static void push(struct detokenizer *d, const char *bytes, const char *wanted,
                 const char *wanted_raw)
{
    struct str out = STR_INIT, raw = STR_INIT;

    if (bytes != NULL)
        detokenizer_push(d, bytes, strlen(bytes), &out, &raw);
    else
        detokenizer_flush(d, &out, &raw);
    assert_string_equal(str_text(&out), wanted);
    assert_string_equal(str_text(&raw), wanted_raw);
    str_done(&out);
    str_done(&raw);
}

static void test_detokenizer(void **state)
{
    struct detokenizer d = {.n_held = 0};
    (void)state;

    push(&d, "a", "a", "");
    push(&d, "\xf0\x9f", "", "");
    push(&d, "\x91", "", "");
    push(&d, "\x8b!", "\xf0\x9f\x91\x8b!", "");
    push(&d, "\xe4", "", "");
    push(&d, "x", "\xef\xbf\xbdx",
         "\xe4x"); /* it will not be completed: said at once, bytes kept */
    push(&d, "\xff", "\xef\xbf\xbd", "\xff");
    push(&d, "ok\xe4\xbd", "ok", "");
    push(&d, NULL, "\xef\xbf\xbd", "\xe4\xbd");
    push(&d, NULL, "", "");
    push(&d, "", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),         cmocka_unit_test(test_merges),
        cmocka_unit_test(test_whole_words),   cmocka_unit_test(test_open_at_every_byte),
        cmocka_unit_test(test_open_spans),    cmocka_unit_test(test_specials),
        cmocka_unit_test(test_tokens_span),   cmocka_unit_test(test_bos),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_missing_bytes), cmocka_unit_test(test_punctuation),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_other_kinds),
        cmocka_unit_test(test_strange_ids),   cmocka_unit_test(test_detokenizer),
    };

    return cmocka_run_group_tests_name("tokenizer", tests, folder_make, folder_remove);
}
