/* Loading: how much room there is, where the weights go for it, progress, cancel. */
#include "test.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/room.h"
#include "engine/engine.h"
#include "folder.h"
#include "tiny_gguf.h"

#define LEN(a) (sizeof(a) / sizeof *(a))

/* ---- room ----------------------------------------------------------------------------------- */

static void put(const char *path, const char *text)
{
    char full[256];
    struct error err;

    snprintf(full, sizeof full, "%s/%s", folder, path);
    assert_true(file_write_atomic(full, text, strlen(text), 0600, &err));
}

static void assert_room(uint64_t want)
{
    uint64_t room = room_memory(folder);

    if (room != want)
        fail_msg("room %llu, should be %llu", (unsigned long long)room, (unsigned long long)want);
}

static void test_room(void **state)
{
    (void)state;
    assert_room(ROOM_UNLIMITED);
    put("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  100 kB\nMemAvailable:     5000 kB\n");
    assert_room(5000 * 1024);

    /* version 2: what the group leaves, its file pages not counted */
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.current", "300000\n");
    assert_room(5000 * 1024);
    put("sys/fs/cgroup/a/b/memory.max", "1000000\n");
    put("sys/fs/cgroup/a/b/memory.stat", "anon 5\nactive_file 50000\ninactive_file 150000\n");
    assert_room(900000);
    put("sys/fs/cgroup/a/b/memory.high", "700000\n");
    assert_room(600000);
    put("sys/fs/cgroup/a/memory.max", "400000\n"); /* those above count too */
    put("sys/fs/cgroup/a/memory.current", "100000\n");
    assert_room(300000);
    put("sys/fs/cgroup/a/memory.current", "500000\n"); /* too much already */
    assert_room(0);

    /* a path of another view: only the mount itself has files */
    put("proc/self/cgroup", "0::/../../c\n");
    put("sys/fs/cgroup/memory.max", "800000");
    assert_room(800000);

    /* version 1, beside groups that are not about memory */
    put("proc/self/cgroup", "3:cpu,cpuacct:/x\n2:hugetlb,memory:/y\n1:name=systemd:/z");
    put("sys/fs/cgroup/memory/y/memory.limit_in_bytes", "200000\n");
    put("sys/fs/cgroup/memory/y/memory.usage_in_bytes", "150000\n");
    put("sys/fs/cgroup/memory/y/memory.stat", "active_file 1\ntotal_active_file 20000\n");
    put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1\n");
    assert_room(70000);
    put("proc/self/cgroup", "nonsense\n\n:\n::\n");
    assert_room(800000);
}

static void test_room_addresses(void **state)
{
    const struct rlimit limit = {1 << 20, 1 << 20};
    int status;
    (void)state;

    put("proc/self/status", "Name:\tx\nVmSize:\t   1000 kB\nVmData:\t  24 kB\n");
    pid_t child = fork();
    if (child == 0) {
        bool ok =
            setrlimit(RLIMIT_AS, &limit) == 0 && room_addresses(folder) == (1 << 20) - 1000 * 1024;
        ok = ok && setrlimit(RLIMIT_DATA, &(struct rlimit){40960, 40960}) == 0 &&
             room_addresses(folder) == 40960 - 24 * 1024;
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- where the weights go ------------------------------------------------------------------- */

enum { TOKENS = 20000, WIDTH = 64 }; /* an embedding of 5 MB: several pieces */

static struct model *open_model(void)
{
    struct tiny_gguf_options o = {.n_embd = WIDTH, .n_extra_tokens = TOKENS, .seed = 3};
    struct error err;
    char path[128];

    snprintf(path, sizeof path, "%s/m.gguf", folder);
    assert_true(tiny_gguf_write(path, &o));
    struct model *m = model_open(path, &err);
    assert_non_null(m);
    return m;
}

/* The logits of a few tokens; the caller frees. */
static float *logits_of(struct model *m, size_t *bytes)
{
    static const int32_t ids[] = {5, 300, 9, 1000, 77};
    struct error err;
    struct session *s = session_new(m, NULL, &err);

    assert_non_null(s);
    assert_int_equal(session_eval(s, ids, LEN(ids), NULL, &err), EVAL_OK);
    *bytes = (size_t)model_get_info(m)->n_vocab * sizeof(float);
    float *logits = mem_dup(session_logits(s), *bytes);
    session_free(s);
    return logits;
}

static void test_choice(void **state)
{
    float *expected = NULL;
    size_t bytes;
    (void)state;

    for (int i = 0; i < 4; i++) {
        struct model *m = open_model();
        const uint64_t once = model_get_info(m)->weight_bytes;
        const uint64_t rooms[] = {0, 2 * once + (1 << 16), 2 * once - (1 << 16), 0};
        struct model_load_options load = {.threads = 2, .room = rooms[i], .no_repack = i == 3};
        struct error err;
        assert_false(model_is_repacked(m));
        assert_null(model_notice(m));
        assert_true(model_load(m, &load, &err));
        assert_int_equal(model_is_repacked(m), i < 2);
        if (i == 2)
            assert_non_null(strstr(model_notice(m), "used in place"));
        else
            assert_null(model_notice(m));
        float *logits = logits_of(m, &bytes);
        if (expected != NULL)
            assert_memory_equal(logits, expected, bytes);
        else
            expected = mem_dup(logits, bytes);
        free(logits);
        model_close(m);
    }
    free(expected);
}

/* No room for the addresses of a copy either: in place, and no error. */
static void test_choice_under_limit(void **state)
{
    int status;
    (void)state;

#ifdef WITH_SANITIZERS
    skip(); /* they map more themselves */
#endif
    pid_t child = fork();
    if (child == 0) {
        struct model *m = open_model();
        struct error err;
        const rlim_t limit = (rlim_t)200 << 20;
        bool ok = setrlimit(RLIMIT_DATA, &(struct rlimit){limit, limit}) == 0 &&
                  model_load(m, &(struct model_load_options){.threads = 1}, &err) &&
                  !model_is_repacked(m) && model_notice(m) != NULL;
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- progress and cancel -------------------------------------------------------------------- */

struct watch {
    int calls;
    double last;
    atomic_bool cancel;
    bool cancels;
};

static void watch_progress(void *ctx, double share)
{
    struct watch *w = ctx;

    assert_true(share >= w->last && share <= 1);
    w->last = share;
    w->calls++;
    atomic_store(&w->cancel, w->cancels);
}

static void test_progress(void **state)
{
    struct model *m = open_model();
    struct watch w = {0};
    struct model_load_options load = {
        .threads = 1, .progress = watch_progress, .progress_ctx = &w, .cancel = &w.cancel};
    struct error err;
    (void)state;

    assert_true(model_load(m, &load, &err));
    assert_true(w.calls >= 2);
    assert_true(w.last == 1);
    model_close(m);
}

static void test_cancel(void **state)
{
    struct model *m = open_model();
    struct watch w = {.cancels = true};
    struct model_load_options load = {
        .threads = 1, .progress = watch_progress, .progress_ctx = &w, .cancel = &w.cancel};
    struct error err;
    (void)state;

    assert_false(model_load(m, &load, &err)); /* in the middle: by its own first word */
    assert_non_null(strstr(err.text, "cancelled"));
    assert_true(w.calls == 1 && w.last < 1);
    assert_int_equal(model_threads(m), 0);
    w = (struct watch){.cancel = true};
    assert_false(model_load(m, &load, &err)); /* before it began */
    assert_int_equal(w.calls, 0);
    w = (struct watch){0};
    assert_true(model_load(m, &load, &err)); /* nothing of that is left */
    assert_true(model_is_repacked(m));
    model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room),     cmocka_unit_test(test_room_addresses),
        cmocka_unit_test(test_choice),   cmocka_unit_test(test_choice_under_limit),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_cancel),
    };

    return cmocka_run_group_tests_name("load", tests, folder_make, folder_remove);
}
