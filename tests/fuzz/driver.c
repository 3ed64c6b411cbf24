/* A main for a fuzz target (fuzz.h), in TAP:
 *
 *   try_X [-runs=N] [-max_total_time=SECONDS] [-seed=N] [FOLDER]   damages the seeds; FOLDER is for
 *                                                                  libFuzzer and not used here
 *   try_X FILE                                                     reads one input, such as a crash
 *   try_X seeds FOLDER                                             writes the seeds there
 *
 * Input n is a function of -seed and n alone. Inputs are read in a child, which shares its n with the
 * parent: so the parent can make the input again on which the child ended, and keep it as a file. */
#include "config.h"

#include "fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

enum { SECONDS_MAX = 60 /* for one input */, PIECE_MAX = 64 };

struct seeds {
    struct str *items;
    size_t n, cap;
};

struct options {
    uint64_t runs, seed;
    int64_t seconds; /* 0: until `runs` are done */
};

/* ---- damage -------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static size_t below(uint64_t *random, size_t n)
{
    return n == 0 ? 0 : (size_t)(next_random(random) % n);
}

static bool is_text(char c)
{
    return c >= ' ' && c < 127;
}

/* A place to damage: anywhere, near the start, where headers are, or in the numbers behind a text. */
static size_t place(uint64_t *random, const struct str *s)
{
    const size_t kind = below(random, 3);
    size_t at = below(random, kind == 0 && s->len > 2048 ? 2048 : s->len);

    if (kind == 1) {
        while (at + 1 < s->len && !(is_text(s->data[at]) && !is_text(s->data[at + 1])))
            at++;
        at += 1 + 4 * below(random, 4);
    }
    return at < s->len ? at : s->len;
}

/* A number that is seldom expected, in 1, 2, 4 or 8 bytes. */
static void put_number(uint64_t *random, struct str *s, size_t at)
{
    static const uint64_t numbers[] = {
        0,         1,          2,          255,        256,        65535,    INT32_MAX, UINT32_MAX,
        INT64_MAX, UINT64_MAX, 0x7F800000, 0x7FC00000, 0x7C007C00, 1u << 20, 1u << 30,
    };
    uint64_t number = numbers[below(random, sizeof numbers / sizeof *numbers)];
    size_t width = (size_t)1 << below(random, 4);

    number -= next_random(random) % 4 == 0;
    for (size_t i = 0; i < width && at + i < s->len; i++)
        s->data[at + i] = (char)(number >> 8 * i);
}

/* A piece of some seed, put in or over what is there. */
static void put_piece(uint64_t *random, const struct seeds *seeds, struct str *s, size_t at,
                      bool in)
{
    const struct str *from = &seeds->items[below(random, seeds->n)];
    size_t len = 1 + below(random, PIECE_MAX), begin = place(random, from);

    len = len > from->len - begin ? from->len - begin : len;
    if (in)
        str_insert(s, at, str_text(from) + begin, len);
    else if (at < s->len)
        memcpy(s->data + at, str_text(from) + begin, len < s->len - at ? len : s->len - at);
}

static void damage(uint64_t *random, const struct seeds *seeds, struct str *s)
{
    size_t at = place(random, s);

    switch (at < s->len ? below(random, 16) : 5) {
    case 0:
    case 1:
        s->data[at] = (char)(s->data[at] ^ 1 << below(random, 8));
        break;
    case 2:
    case 3:
        s->data[at] = (char)next_random(random);
        break;
    case 4:
        str_erase(s, at, 1 + below(random, s->len - at < PIECE_MAX ? s->len - at : PIECE_MAX));
        break;
    case 5:
    case 6:
        put_piece(random, seeds, s, at, true);
        break;
    case 7:
    case 8:
        put_piece(random, seeds, s, at, false);
        break;
    case 9:
        str_truncate(s, at);
        break;
    default:
        put_number(random, s, at);
    }
}

/* Input `n`: the seeds as they are, then damaged ones, the half of them at one place only: what is damaged
 * more is mostly refused early. */
static void make_input(const struct seeds *seeds, uint64_t seed, uint64_t n, struct str *out)
{
    uint64_t random = seed ^ n * 0xD6E8FEB86659FD93u;
    const struct str *from = &seeds->items[n < seeds->n ? n : below(&random, seeds->n)];

    str_clear(out);
    str_add(out, str_text(from), from->len);
    if (n < seeds->n)
        return;
    do
        damage(&random, seeds, out);
    while (next_random(&random) % 2 == 0);
}

/* ---- running ------------------------------------------------------------------------------- */

static void read_one(const struct str *input)
{
    /* A copy of exactly its size, so that a sanitizer sees what reads beyond. */
    uint8_t *bytes = mem_alloc(input->len);

    memcpy(bytes, str_text(input), input->len);
    LLVMFuzzerTestOneInput(bytes, input->len);
    free(bytes);
}

/* The child: inputs from 0 on; *at is the one that is being read. */
static void run(const struct seeds *seeds, const struct options *o, volatile uint64_t *at)
{
    int64_t end = clock_now_ns() + o->seconds * 1000000000;
    struct str input = STR_INIT;

    for (*at = 0; o->seconds > 0 ? clock_now_ns() < end : *at < o->runs; ++*at) {
        make_input(seeds, o->seed, *at, &input);
        alarm(SECONDS_MAX);
        read_one(&input);
    }
    alarm(0);
    str_done(&input);
}

static int test(const struct seeds *seeds, const struct options *o, const char *name)
{
    volatile uint64_t *at =
        mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct str input = STR_INIT, path = STR_INIT;
    struct error err;
    int status;

    FUZZ_CHECK(at != MAP_FAILED);
    printf("1..1\n");
    fflush(NULL);
    pid_t child = fork();
    FUZZ_CHECK(child >= 0);
    if (child == 0) {
        run(seeds, o, at);
        exit(0); /* where the leak sanitizer looks */
    }
    FUZZ_CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        printf("ok 1 - %llu inputs of %zu seeds\n", (unsigned long long)*at, seeds->n);
        return 0;
    }
    str_add_format(&path, "crash-%s-%llu-%llu", name, (unsigned long long)o->seed,
                   (unsigned long long)*at);
    make_input(seeds, o->seed, *at, &input);
    printf("not ok 1 - input %llu: %s %d; kept as %s\n", (unsigned long long)*at,
           WIFSIGNALED(status) ? "signal" : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), str_text(&path));
    if (!file_write_atomic(str_text(&path), input.data, input.len, 0644, &err))
        printf("# %s\n", err.text);
    str_done(&input);
    str_done(&path);
    return 1;
}

static int write_seeds(const struct seeds *seeds, const char *folder)
{
    struct str path = STR_INIT;
    struct error err;
    bool ok = true;

    for (size_t i = 0; i < seeds->n && ok; i++) {
        str_clear(&path);
        str_add_format(&path, "%s/seed-%zu", folder, i);
        ok = file_write_atomic(str_text(&path), seeds->items[i].data, seeds->items[i].len, 0644,
                               &err);
    }
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    str_done(&path);
    return ok ? 0 : 1;
}

static int read_file(const char *path)
{
    struct str input = STR_INIT;
    struct error err;

    if (!file_read(path, SIZE_MAX / 2, &input, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    read_one(&input);
    str_done(&input);
    return 0;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int main(int argc, char **argv)
{
    struct options o = {fuzz_test_runs, 1, 0};
    struct seeds seeds = {NULL, 0, 0};
    struct str seed = STR_INIT;
    const char *slash = strrchr(argv[0], '/'), *file = NULL;
    int status;

    for (int i = 1; i < argc; i++) {
        unsigned long long value;
        if (sscanf(argv[i], "-runs=%llu", &value) == 1)
            o.runs = value;
        else if (sscanf(argv[i], "-seed=%llu", &value) == 1)
            o.seed = value;
        else if (sscanf(argv[i], "-max_total_time=%llu", &value) == 1)
            o.seconds = (int64_t)value;
        else if (!is_folder(argv[i]))
            file = argv[i];
    }
    while (fuzz_seed(seeds.n, &seed)) {
        mem_grow(&seeds.items, &seeds.cap, seeds.n + 1, sizeof *seeds.items);
        seeds.items[seeds.n++] = seed;
        seed = (struct str)STR_INIT;
    }
    if (argc == 3 && strcmp(argv[1], "seeds") == 0)
        status = write_seeds(&seeds, argv[2]);
    else if (file != NULL)
        status = read_file(file);
    else
        status = test(&seeds, &o, slash != NULL ? slash + 1 : argv[0]);
    for (size_t i = 0; i < seeds.n; i++)
        str_done(&seeds.items[i]);
    free(seeds.items);
    return status;
}
