#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/gguf.h"
#include "folder.h"
#include "tiny_gguf.h"

static char path[64]; /* of the file of the test at hand */

static int set_up(void **state)
{
    int rc = folder_make(state);

    snprintf(path, sizeof path, "%s/x.gguf", folder);
    return rc;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void put(struct str *s, uint64_t value, size_t bytes)
{
    str_add(s, (const char *)&value, bytes);
}

static void put_text(struct str *s, const char *text)
{
    put(s, strlen(text), 8);
    str_add_text(s, text);
}

static void put_head(struct str *s, uint32_t version, uint64_t tensors, uint64_t keys)
{
    str_add_text(s, "GGUF");
    put(s, version, 4);
    put(s, tensors, 8);
    put(s, keys, 8);
}

static void put_tensor(struct str *s, const char *name, uint32_t n_dims, uint64_t d0, uint64_t d1,
                       uint32_t type, uint64_t offset)
{
    put_text(s, name);
    put(s, n_dims, 4);
    put(s, d0, 8);
    if (n_dims > 1)
        put(s, d1, 8);
    put(s, type, 4);
    put(s, offset, 8);
}

static void fill(struct str *s, size_t n)
{
    while (n-- > 0)
        str_add_char(s, (char)n);
}

/* ---- what is read -------------------------------------------------------------------------- */

static void test_values(void **state)
{
    struct tiny_writer w = TINY_WRITER_INIT;
    const char *texts[] = {"a", "", "ccc"};
    int32_t ints[] = {5, -5, 5}, same[] = {7, 7};
    struct str bytes = STR_INIT;
    struct error err;
    int64_t i = 42;
    double d = 0;
    bool b = false;
    struct gguf_string s;
    struct gguf_array a;
    (void)state;

    tiny_add_u32(&w, "u", 4000000000u);
    tiny_add_f32(&w, "f", 0.5f);
    tiny_add_bool(&w, "b", true);
    tiny_add_text(&w, "s", "text");
    tiny_add_texts(&w, "ss", texts, 3);
    tiny_add_ints(&w, "is", ints, 3);
    tiny_add_ints(&w, "same", same, 2);
    tiny_add_ints(&w, "none", same, 0);
    tiny_finish(&w, &bytes);
    assert_true(tiny_save(path, &bytes));
    str_done(&bytes);
    struct gguf *g = gguf_open(path, &err);
    assert_non_null(g);
    assert_string_equal(gguf_path(g), path);

    assert_true(gguf_read_int(g, "u", true, 0, INT64_MAX, &i, &err));
    assert_int_equal(i, 4000000000);
    assert_true(gguf_read_int(g, "same", true, 0, 9, &i, &err));
    assert_int_equal(i, 7);
    assert_true(gguf_read_int(g, "missing", false, 0, 9, &i, &err));
    assert_int_equal(i, 7);
    assert_true(gguf_read_number(g, "f", true, 0, 1, &d, &err));
    assert_true(d == 0.5);
    assert_true(gguf_read_number(g, "u", true, 0, 1e10, &d, &err));
    assert_true(d == 4e9);
    assert_true(gguf_read_bool(g, "b", true, &b, &err));
    assert_true(b);
    assert_true(gguf_read_string(g, "s", true, &s, &err));
    assert_int_equal(s.len, 4);
    assert_memory_equal(s.text, "text", 4);
    assert_true(gguf_read_array(g, "ss", true, GGUF_STRING, &a, &err));
    for (size_t k = 0; k < 3; k++) {
        assert_true(gguf_next_string(&a, &s));
        assert_int_equal(s.len, strlen(texts[k]));
    }
    assert_false(gguf_next_string(&a, &s));
    assert_true(gguf_read_array(g, "is", true, GGUF_I32, &a, &err));
    assert_true(gguf_next_int(&a, &i) && i == 5);
    assert_true(gguf_next_int(&a, &i) && i == -5);
    assert_true(gguf_has_key(g, "is") && !gguf_has_key(g, "i") && !gguf_has_key(g, "iss"));

    assert_false(gguf_read_int(g, "u", true, 0, 100, &i, &err));
    assert_non_null(strstr(err.text, "x.gguf: key u: 4000000000 is not within 0 - 100"));
    assert_false(gguf_read_int(g, "is", true, -9, 9, &i, &err));
    assert_non_null(strstr(err.text, "differ from layer to layer"));
    assert_false(gguf_read_int(g, "none", true, -9, 9, &i, &err));
    assert_non_null(strstr(err.text, "empty array"));
    assert_false(gguf_read_int(g, "s", true, 0, 9, &i, &err));
    assert_non_null(strstr(err.text, "key s: string where a whole number belongs"));
    assert_false(gguf_read_int(g, "f", true, 0, 9, &i, &err));
    assert_false(gguf_read_number(g, "s", true, 0, 9, &d, &err));
    assert_false(gguf_read_bool(g, "u", true, &b, &err));
    assert_false(gguf_read_string(g, "ss", true, &s, &err));
    assert_non_null(strstr(err.text, "an array of string where a string belongs"));
    assert_false(gguf_read_array(g, "ss", true, GGUF_I32, &a, &err));
    assert_false(gguf_read_array(g, "s", true, GGUF_STRING, &a, &err));
    assert_false(gguf_read_string(g, "missing", true, &s, &err));
    assert_non_null(strstr(err.text, "key missing is missing"));
    gguf_close(g);
}

/* Every width of integer, at both of its ends. */
static void test_integers(void **state)
{
    static const struct {
        enum gguf_type type;
        size_t bytes;
        uint64_t raw;
        int64_t value;
    } cases[] = {
        {GGUF_U8, 1, 0xFF, 255},
        {GGUF_I8, 1, 0x80, -128},
        {GGUF_U16, 2, 0xFFFF, 65535},
        {GGUF_I16, 2, 0x8000, -32768},
        {GGUF_U32, 4, 0xFFFFFFFF, 4294967295},
        {GGUF_I32, 4, 0x80000000, INT32_MIN},
        {GGUF_U64, 8, INT64_MAX, INT64_MAX},
        {GGUF_I64, 8, 1ull << 63, INT64_MIN},
        {GGUF_U64, 8, UINT64_MAX, INT64_MAX},
    };
    struct error err;
    int64_t value;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str s = STR_INIT;
        put_head(&s, 3, 0, 1);
        put_text(&s, "k");
        put(&s, cases[i].type, 4);
        put(&s, cases[i].raw, cases[i].bytes);
        assert_true(tiny_save(path, &s));
        str_done(&s);
        struct gguf *g = gguf_open(path, &err);
        assert_non_null(g);
        assert_true(gguf_read_int(g, "k", true, INT64_MIN, INT64_MAX, &value, &err));
        assert_true(value == cases[i].value);
        gguf_close(g);
    }
}

static void test_tensors(void **state)
{
    struct tiny_writer w = TINY_WRITER_INIT;
    float a[6] = {1, 2, 3, 4, 5, 6};
    unsigned char q[40] = {7};
    struct str bytes = STR_INIT;
    struct error err;
    (void)state;

    w.version = 2;
    w.alignment = 64;
    tiny_add_u32(&w, "general.alignment", 64);
    tiny_add_tensor(&w, "b", QUANT_F32, 3, 2, a, sizeof a);
    tiny_add_tensor(&w, "a", QUANT_Q4_1, 64, 0, q, sizeof q);
    tiny_add_tensor(&w, "odd", 77, 5, 0, q, 1);
    tiny_finish(&w, &bytes);
    assert_true(tiny_save(path, &bytes));
    str_done(&bytes);
    struct gguf *g = gguf_open(path, &err);
    assert_non_null(g);
    assert_int_equal(gguf_n_tensors(g), 3);
    const struct gguf_tensor *t = gguf_find_tensor(g, "b");
    assert_ptr_equal(t, gguf_tensor_at(g, 0));
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->dims[0], 3);
    assert_int_equal(t->dims[1], 2);
    assert_int_equal(t->dims[2], 1);
    assert_int_equal(t->n_elements, 6);
    assert_int_equal(t->bytes, 24);
    assert_memory_equal(t->data, a, sizeof a);
    assert_int_equal((uintptr_t)t->data % 64, 0);
    t = gguf_find_tensor(g, "a");
    assert_int_equal(t->bytes, 40);
    assert_int_equal(*(const char *)t->data, 7);
    t = gguf_find_tensor(g, "odd");
    assert_int_equal(t->type, 77);
    assert_int_equal(t->bytes, 0);
    assert_null(gguf_find_tensor(g, "c"));
    gguf_release(g, gguf_find_tensor(g, "b"), 0, UINT64_MAX);
    assert_memory_equal(gguf_find_tensor(g, "b")->data, a, sizeof a);
    gguf_close(g);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void assert_refused(struct str *bytes, const char *why)
{
    struct error err = {""};

    assert_true(tiny_save(path, bytes));
    str_done(bytes);
    struct gguf *g = gguf_open(path, &err);
    if (g != NULL || strstr(err.text, why) == NULL || strstr(err.text, path) == NULL) {
        gguf_close(g);
        fail_msg("'%s' does not say '%s'", err.text, why);
    }
}

static void test_no_file(void **state)
{
    struct error err;
    char fifo[80];
    (void)state;

    assert_null(gguf_open("/nowhere/at/all.gguf", &err));
    assert_non_null(strstr(err.text, "/nowhere/at/all.gguf: No such file"));
    assert_null(gguf_open(folder, &err));
    assert_non_null(strstr(err.text, "not a regular file"));
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_null(gguf_open(fifo, &err)); /* and does not wait for a writer */
    assert_non_null(strstr(err.text, "not a regular file"));
    unlink(fifo);
}

static void test_heads(void **state)
{
    struct str s = STR_INIT;
    (void)state;

    assert_refused(&s, "the file is empty");
    str_add_text(&s, "GG");
    assert_refused(&s, "not a GGUF file");
    str_add_text(&s, "version https://git-lfs.github.com/spec/v1\n");
    assert_refused(&s, "Git LFS pointer");
    put_head(&s, 1, 0, 0);
    assert_refused(&s, "version 1 is not supported");
    put_head(&s, 4, 0, 0);
    assert_refused(&s, "version 4 is not supported");
    put_head(&s, 3u << 24, 0, 0);
    assert_refused(&s, "big-endian");
    put_head(&s, 3, 0, 1ull << 60);
    assert_refused(&s, "keys are more than such a file can hold");
    put_head(&s, 3, 1ull << 60, 0);
    assert_refused(&s, "tensors are more than such a file can hold");
    put_head(&s, 3, UINT64_MAX, UINT64_MAX);
    assert_refused(&s, "keys are more than such a file can hold");
}

static void start_key(struct str *s, const char *key, uint32_t type)
{
    put_head(s, 3, 0, 1);
    put_text(s, key);
    put(s, type, 4);
}

static void test_keys(void **state)
{
    struct str s = STR_INIT;
    (void)state;

    put_head(&s, 3, 0, 1);
    put(&s, UINT64_MAX, 8); /* a key as long as can be said */
    fill(&s, 16);
    assert_refused(&s, "cut off inside a key");
    start_key(&s, "", GGUF_U8);
    fill(&s, 8);
    assert_refused(&s, "a key of 0 bytes");
    start_key(&s, "k", 13);
    fill(&s, 8);
    assert_refused(&s, "no type has the number 13");
    start_key(&s, "k", GGUF_U64);
    put(&s, 0, 4);
    assert_refused(&s, "key k: its value goes beyond the end");
    start_key(&s, "k", GGUF_STRING);
    put(&s, UINT64_MAX - 3, 8);
    assert_refused(&s, "key k: its value goes beyond the end");
    start_key(&s, "k", GGUF_ARRAY);
    put(&s, GGUF_U32, 4);
    put(&s, 1ull << 62, 8); /* times four is nothing at all */
    fill(&s, 16);
    assert_refused(&s, "key k: its value goes beyond the end");
    start_key(&s, "k", GGUF_ARRAY);
    put(&s, GGUF_STRING, 4);
    put(&s, 1ull << 61, 8);
    fill(&s, 16);
    assert_refused(&s, "key k: its value goes beyond the end");
    start_key(&s, "k", GGUF_ARRAY);
    put(&s, GGUF_ARRAY, 4);
    put(&s, 1, 8);
    fill(&s, 16);
    assert_refused(&s, "arrays of arrays");
    start_key(&s, "k", GGUF_ARRAY);
    put(&s, 99, 4);
    put(&s, 1, 8);
    assert_refused(&s, "no type has the number 99");
    put_head(&s, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        put_text(&s, "twice");
        put(&s, GGUF_U8, 4);
        put(&s, 1, 1);
    }
    assert_refused(&s, "key twice is there twice");
    start_key(&s, "general.alignment", GGUF_U32);
    put(&s, 24, 4);
    assert_refused(&s, "24 is not a power of two");
    start_key(&s, "general.alignment", GGUF_U32);
    put(&s, 0, 4);
    assert_refused(&s, "general.alignment: 0 is not within 8");
    start_key(&s, "a\033[31mb", 50);
    assert_refused(&s, "key a?[31mb: no type"); /* nothing hostile reaches a terminal */
}

static void test_bad_tensors(void **state)
{
    struct str s = STR_INIT;
    (void)state;

    put_head(&s, 3, 1, 0);
    put(&s, 1ull << 40, 8);
    fill(&s, 40);
    assert_refused(&s, "cut off inside a tensor's name");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "", 1, 1, 0, 0, 0);
    fill(&s, 64);
    assert_refused(&s, "a tensor's name of 0 bytes");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 5, 1, 1, 0, 0);
    fill(&s, 64);
    assert_refused(&s, "tensor t: 5 dimensions");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 0, 1, 1, 0, 0);
    fill(&s, 64);
    assert_refused(&s, "tensor t: 0 dimensions");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 2, 0, 4, 0, 0);
    fill(&s, 64);
    assert_refused(&s, "tensor t: dimension 0 is 0");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 2, 1ull << 40, 1ull << 40, 0, 0);
    fill(&s, 64);
    assert_refused(&s, "tensor t: dimension 1 is 1099511627776");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 1, 1ull << 62, 0, QUANT_F32, 0);
    fill(&s, 64);
    assert_refused(&s, "tensor t: too large");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 1, 33, 0, QUANT_Q4_1, 0);
    fill(&s, 64);
    assert_refused(&s, "tensor t: rows of 33 elements are not whole blocks of Q4_1");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 1, 1, 0, QUANT_F32, 16);
    fill(&s, 128);
    assert_refused(&s, "tensor t: its offset 16 is not a multiple of 32");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 1, 1, 0, QUANT_F32, UINT64_MAX - 31);
    fill(&s, 128);
    assert_refused(&s, "tensor t: its data goes beyond the end");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 1, 64, 0, QUANT_F32, 0);
    fill(&s, 200);
    assert_refused(&s, "tensor t: its data goes beyond the end");
    put_head(&s, 3, 1, 0);
    put_tensor(&s, "t", 1, 1, 0, QUANT_F32, 0);
    assert_refused(&s, "cut off before the tensors' data");
    put_head(&s, 3, 2, 0);
    put_tensor(&s, "t", 1, 1, 0, QUANT_F32, 0);
    put_tensor(&s, "t", 1, 1, 0, QUANT_F32, 32);
    fill(&s, 128);
    assert_refused(&s, "tensor t is there twice");
    put_head(&s, 3, 2, 0);
    put_tensor(&s, "t", 1, 16, 0, QUANT_F32, 0);
    put_tensor(&s, "u", 1, 1, 0, QUANT_F32, 32);
    fill(&s, 128);
    assert_refused(&s, "tensors t and u overlap");
    put_head(&s, 3, 3, 0); /* one of an unknown type between them hides nothing */
    put_tensor(&s, "t", 1, 32, 0, QUANT_F32, 0);
    put_tensor(&s, "x", 1, 1, 0, 99, 32);
    put_tensor(&s, "u", 1, 1, 0, QUANT_F32, 64);
    fill(&s, 160);
    assert_refused(&s, "tensors t and u overlap");
}

/* ---- split sets ---------------------------------------------------------------------------- */

static void add_split(struct tiny_writer *w, uint32_t number, uint32_t total)
{
    tiny_add_u32(w, "split.no", number);
    tiny_add_u32(w, "split.count", 2);
    tiny_add_u32(w, "split.tensors.count", total);
}

static void save_part(struct tiny_writer *w, const char *name)
{
    struct str bytes = STR_INIT;
    char file[128];

    snprintf(file, sizeof file, "%s/%s", folder, name);
    tiny_finish(w, &bytes);
    assert_true(tiny_save(file, &bytes));
    str_done(&bytes);
}

static const char *open_error(const char *name)
{
    static struct error err;
    char file[128];

    snprintf(file, sizeof file, "%s/%s", folder, name);
    strcpy(err.text, "none");
    gguf_close(gguf_open(file, &err));
    return err.text;
}

static void test_split(void **state)
{
    static const char first[] = "m-00001-of-00002.gguf", second[] = "m-00002-of-00002.gguf";
    struct tiny_writer w = TINY_WRITER_INIT;
    char file[128], other[128];
    struct error err;
    float x[2] = {1.5f, 2.5f};
    (void)state;

    snprintf(file, sizeof file, "%s/%s", folder, first);
    snprintf(other, sizeof other, "%s/%s", folder, second);
    add_split(&w, 0, 2);
    tiny_add_tensor(&w, "one", QUANT_F32, 1, 0, &x[0], 4);
    save_part(&w, first);
    assert_non_null(strstr(open_error(first), "m-00002-of-00002.gguf: No such file"));
    add_split(&w, 1, 2);
    tiny_add_tensor(&w, "two", QUANT_F32, 1, 0, &x[1], 4);
    save_part(&w, second);
    struct gguf *g = gguf_open(file, &err);
    assert_non_null(g);
    assert_int_equal(gguf_n_tensors(g), 2);
    assert_memory_equal(gguf_find_tensor(g, "one")->data, &x[0], 4);
    assert_memory_equal(gguf_find_tensor(g, "two")->data, &x[1], 4);
    assert_int_equal(gguf_find_tensor(g, "two")->part, 1);
    gguf_close(g);
    assert_non_null(strstr(open_error(second), "part 2 of 2: open the first one"));

    add_split(&w, 1, 2);
    tiny_add_tensor(&w, "one", QUANT_F32, 1, 0, &x[1], 4);
    save_part(&w, second);
    assert_non_null(strstr(open_error(first), second));
    assert_non_null(strstr(open_error(first), "tensor one is there twice"));
    add_split(&w, 0, 2);
    save_part(&w, second);
    assert_non_null(strstr(open_error(first), "says that it is part 1 of 2"));
    add_split(&w, 1, 2);
    save_part(&w, second);
    assert_non_null(strstr(open_error(first), "2 tensors announced, 1 found in 2 parts"));
    add_split(&w, 0, 2);
    save_part(&w, "m.gguf");
    assert_non_null(strstr(open_error("m.gguf"), "but not called NAME-00001-of-00002.gguf"));
    unlink(file);
    unlink(other);
    snprintf(file, sizeof file, "%s/m.gguf", folder);
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),      cmocka_unit_test(test_integers),
        cmocka_unit_test(test_tensors),     cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_heads),       cmocka_unit_test(test_keys),
        cmocka_unit_test(test_bad_tensors), cmocka_unit_test(test_split),
    };

    return cmocka_run_group_tests_name("gguf", tests, set_up, folder_remove);
}
