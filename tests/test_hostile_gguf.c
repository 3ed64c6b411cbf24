#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/mapguard.h"
#include "engine/model.h"
#include "folder.h"
#include "tiny_gguf.h"

static char path[64]; /* of the file of the test at hand */

static int set_up(void **state)
{
    int rc = folder_make(state);

    snprintf(path, sizeof path, "%s/x.gguf", folder);
    return rc;
}

/* ---- damage -------------------------------------------------------------------------------- */

/* Opens the file at `path` as a model with its tokenizer; whatever happens, it must be orderly. */
static bool try_model(const char *what)
{
    struct error err = {""};
    struct model *m = model_open(path, &err);

    if (m == NULL) {
        if (err.text[0] == '\0' || strstr(err.text, path) == NULL)
            fail_msg("%s: no proper error: '%s'", what, err.text);
        return false;
    }
    struct span span = {SPAN_MARKUP, "the rain <|im_end|> \xff", 21, NULL, 0};
    struct token_list ids = {NULL, 0, 0};
    const struct tokenizer *t = model_tokenizer(m, &err);
    if (t != NULL)
        tokenizer_encode(t, &span, 1, TOKENIZE_BOS, &ids);
    else if (err.text[0] == '\0')
        fail_msg("%s: no error", what);
    token_list_done(&ids);
    model_close(m);
    return true;
}

/* Half a gigabyte of addresses is room for any honest file here, and for no absurd allocation. */
static void bound_memory(bool bound)
{
#ifndef WITH_SANITIZERS /* they map terabytes */
    struct rlimit limit;

    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = bound ? (rlim_t)512 << 20 : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
#else
    (void)bound;
#endif
}

static void test_truncated(void **state)
{
    struct tiny_gguf_options o = {.n_layer = 1, .n_embd = 32, .n_ff = 32, .type = QUANT_Q4_1};
    struct str bytes = STR_INIT;
    char what[40];
    (void)state;

    tiny_gguf_build(&o, &bytes);
    assert_true(tiny_save(path, &bytes));
    assert_true(try_model("whole"));
    bound_memory(true);
    for (size_t len = bytes.len; len-- > 0;) {
        snprintf(what, sizeof what, "cut at %zu", len);
        assert_int_equal(truncate(path, (off_t)len), 0);
        assert_false(try_model(what));
        if (len > 24000) /* in the data every byte is like the next */
            len -= 97;
    }
    bound_memory(false);
    str_done(&bytes);
}

static void test_mutated(void **state)
{
    struct tiny_gguf_options o = {.n_layer = 1, .n_embd = 32, .n_ff = 32, .type = QUANT_Q8_0};
    struct str bytes = STR_INIT;
    uint32_t random = 20261130;
    size_t refused = 0;
    char what[60];
    (void)state;

    tiny_gguf_build(&o, &bytes);
    assert_true(tiny_save(path, &bytes));
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    bound_memory(true);
    for (int i = 0; i < 6000; i++) {
        random = random * 1664525 + 1013904223;
        size_t at =
            (random >> 4) % (i % 2 == 0 ? 16384 : 1200); /* the header; its start more often */
        random = random * 1664525 + 1013904223;
        char byte = (char)(i % 3 == 0 ? bytes.data[at] ^ 1 << (random >> 29) : (int)(random >> 24));
        snprintf(what, sizeof what, "byte %zu changed to %d", at, byte);
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
        refused += !try_model(what);
        assert_int_equal(pwrite(fd, bytes.data + at, 1, (off_t)at), 1);
    }
    bound_memory(false);
    close(fd);
    assert_true(try_model("as it was"));
    assert_true(refused > 500); /* the mutations reach what is checked */
    str_done(&bytes);
}

/* ---- a file that shrinks under the map ----------------------------------------------------- */

static void test_shrinks(void **state)
{
    struct tiny_gguf_options o = {.n_layer = 1, .type = QUANT_F32};
    struct error err;
    struct stat st;
    uint64_t sum = 0;
    (void)state;

    assert_true(tiny_gguf_write(path, &o));
    struct gguf *g = gguf_open(path, &err);
    assert_non_null(g);
    assert_true(gguf_check_whole(g, &err));
    assert_false(gguf_is_damaged(g));
    const struct gguf_tensor *t = gguf_find_tensor(g, "blk.0.ffn_down.weight");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, 4096), 0);
    assert_false(gguf_check_whole(g, &err));
    assert_non_null(strstr(err.text, "x.gguf: the file was cut short while it was in use"));
    for (uint64_t i = 0; i < t->bytes; i++)
        sum += ((const unsigned char *)t->data)[i];
    assert_int_equal(sum, 0);
    assert_true(gguf_is_damaged(g));
    assert_int_equal(truncate(path, st.st_size), 0);
    assert_false(gguf_check_whole(g, &err)); /* growing back does not mend it */
    gguf_close(g);
}

static void test_tokenizer_of_a_cut_file(void **state)
{
    struct tiny_gguf_options o = {.n_layer = 1};
    struct error err = {""};
    (void)state;

    assert_true(tiny_gguf_write(path, &o));
    struct model *m = model_open(path, &err);
    assert_non_null(m);
    assert_int_equal(truncate(path, 0), 0);
    assert_null(model_tokenizer(m, &err));
    assert_string_not_equal(err.text, "");
    model_close(m);
}

static volatile sig_atomic_t caught;
static void *lost_page;

static void on_bus_error(int number)
{
    (void)number;
    caught++;
    mmap(lost_page, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* A fault outside guarded maps goes to whoever handled it before. */
static void test_chains(void **state)
{
    struct sigaction action = {.sa_handler = on_bus_error}, before;
    struct tiny_gguf_options o = {.n_layer = 1};
    struct error err;
    (void)state;

    assert_int_equal(sigaction(SIGBUS, &action, &before), 0);
    assert_true(tiny_gguf_write(path, &o));
    struct gguf *g = gguf_open(path, &err);
    assert_non_null(g);
    int fd = open(path, O_RDONLY);
    lost_page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(lost_page, MAP_FAILED);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(*(volatile const char *)lost_page, 0);
    assert_int_equal(caught, 1);
    assert_false(gguf_is_damaged(g));
    assert_false(mapguard_catch(lost_page));
    munmap(lost_page, 4096);
    close(fd);
    gguf_close(g);
    sigaction(SIGBUS, &before, NULL);
}

/* And with nobody before, it ends the process as ever. */
static void test_no_handler_before(void **state)
{
    struct tiny_gguf_options o = {.n_layer = 1};
    struct error err;
    int status;
    (void)state;

    assert_true(tiny_gguf_write(path, &o));
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGBUS, SIG_DFL);
        struct gguf *g = gguf_open(path, &err);
        int fd = open(path, O_RDONLY);
        const volatile char *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
        _exit(g != NULL && truncate(path, 0) == 0 ? *map : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated), cmocka_unit_test(test_mutated),
        cmocka_unit_test(test_shrinks),   cmocka_unit_test(test_tokenizer_of_a_cut_file),
        cmocka_unit_test(test_chains),    cmocka_unit_test(test_no_handler_before),
    };

    return cmocka_run_group_tests_name("hostile", tests, set_up, folder_remove);
}
