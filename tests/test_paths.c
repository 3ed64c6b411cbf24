/* XDG folders, and models in the layouts of the programs that keep them. */
#include "test.h"

#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/paths.h"
#include "folder.h"

static char *home;

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *format, ...)
{
    struct str command = STR_INIT;
    va_list args;

    va_start(args, format);
    str_add_vformat(&command, format, args);
    va_end(args);
    assert_int_equal(system(str_text(&command)), 0);
    str_done(&command);
}

/* A home of its own for each test, with nothing in it. */
static int set_up(void **state)
{
    static const char *const unset[] = {"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
                                        "HF_HUB_CACHE",    "HF_HOME",        "LLAMA_CACHE",
                                        "OLLAMA_MODELS",   "FADER_DATA_DIR"};

    if (folder_make(state) != 0)
        return -1;
    home = file_join(folder, "home");
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        unsetenv(unset[i]);
    /* what the system's Ollama has must not show up; otherwise the default */
    if (access("/usr/share/ollama", F_OK) == 0) {
        char *store = file_join(home, ".ollama/models");
        setenv("OLLAMA_MODELS", store, 1);
        free(store);
    }
    struct error err;
    return file_make_dirs(home, &err) && chdir(home) == 0 ? setenv("HOME", home, 1) : -1;
}

static int tear_down(void **state)
{
    free(home);
    return chdir("/") == 0 ? folder_remove(state) : -1;
}

/* A file below `folder` that passes for a model: the magic, and `extra` bytes to make it unlike
 * others. */
static void make_model(const char *path, size_t extra)
{
    char *full = file_join(folder, path);
    struct str s = STR_INIT;
    struct error err;

    str_add(&s, "GGUF\3\0\0\0", 8);
    for (size_t i = 0; i < extra; i++)
        str_add_char(&s, 'x');
    if (!file_write_atomic(full, s.data, s.len, 0600, &err))
        fail_msg("%s", err.text);
    str_done(&s);
    free(full);
}

static void make_file(const char *path, const char *text)
{
    char *full = file_join(folder, path);
    struct error err;

    if (!file_write_atomic(full, text, strlen(text), 0600, &err))
        fail_msg("%s", err.text);
    free(full);
}

static void assert_listed(const struct model_file_list *list, size_t i, const char *name,
                          const char *where, unsigned long long size)
{
    assert_true(i < list->n);
    assert_string_equal(list->items[i].name, name);
    assert_string_equal(list->items[i].where, where);
    assert_int_equal(list->items[i].size, size);
}

/* ---- folders -------------------------------------------------------------------------------- */

static void assert_path(char *path, const char *want)
{
    assert_string_equal(path, want);
    free(path);
}

static void test_xdg(void **state)
{
    struct str want = STR_INIT;
    (void)state;

    str_add_format(&want, "%s/.config/fader/x", home);
    assert_path(paths_config("x"), str_text(&want));
    setenv("XDG_CONFIG_HOME", "relative", 1); /* the specification: not absolute, so ignored */
    assert_path(paths_config("x"), str_text(&want));
    setenv("XDG_CONFIG_HOME", "", 1);
    assert_path(paths_config("x"), str_text(&want));
    setenv("XDG_CONFIG_HOME", "/c", 1);
    setenv("XDG_STATE_HOME", "/s/", 1);
    setenv("XDG_CACHE_HOME", "/k", 1);
    assert_path(paths_config("x"), "/c/fader/x");
    assert_path(paths_state("x/y"), "/s/fader/x/y");
    assert_path(paths_cache("x"), "/k/fader/x");
    unsetenv("XDG_STATE_HOME");
    str_clear(&want);
    str_add_format(&want, "%s/.local/state/fader/x", home);
    assert_path(paths_state("x"), str_text(&want));
    unsetenv("HOME"); /* the password file knows one */
    char *path = paths_state("x");
    assert_true(path[0] == '/' && strstr(path, "/.local/state/fader/x") != NULL);
    free(path);
    str_done(&want);
}

static void test_data(void **state)
{
    char **list;
    (void)state;

    setenv("XDG_CONFIG_HOME", "/c", 1);
    setenv("FADER_DATA_DIR", "/d", 1);
    list = paths_data("presets");
    assert_string_equal(list[0], "/c/fader/presets");
    assert_string_equal(list[1], "/d/presets");
    assert_null(list[2]);
    paths_list_free(list);
    unsetenv("FADER_DATA_DIR");
    list = paths_data("themes");
    assert_string_equal(list[0], "/c/fader/themes");
    size_t n = 0;
    while (list[n] != NULL)
        n++;
    assert_true(n >= 2 && n <= 4);
    assert_string_equal(list[n - 1], FADER_PKGDATADIR "/themes");
    paths_list_free(list);
}

/* ---- models --------------------------------------------------------------------------------- */

static const char ollama_manifest[] =
    "{\"schemaVersion\":2,\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.license\","
    "\"digest\":\"sha256:%s\"},{\"mediaType\":\"application/vnd.ollama.image.model\","
    "\"digest\":\"sha256:%s\"}]}";

static void make_manifest(const char *path, const char *digest)
{
    struct str s = STR_INIT;

    str_add_format(&s, ollama_manifest, digest, digest);
    make_file(path, str_text(&s));
    str_done(&s);
}

#define DIGEST_TAIL "00000000000000000000000000000000000000000000000000000000000000f"
#define DIGEST      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_layouts(void **state)
{
    struct model_file_list list;
    (void)state;

    make_model("home/.cache/fader/models/own.gguf", 1);
    make_model("home/.cache/huggingface/hub/models--org--repo/blobs/b10b", 2);
    run("mkdir -p %s/.cache/huggingface/hub/models--org--repo/snapshots/rev1 && "
        "ln -s ../../blobs/b10b "
        "%s/.cache/huggingface/hub/models--org--repo/snapshots/rev1/Hugging.gguf",
        home, home);
    run("mkdir -p %s/.cache/huggingface/hub/models--org--repo/snapshots/rev2 && " /* the same blob
                                                                                   */
        "ln -s ../../blobs/b10b "
        "%s/.cache/huggingface/hub/models--org--repo/snapshots/rev2/Hugging.gguf",
        home, home);
    make_model("home/.cache/llama.cpp/camel.GGUF", 3);
    make_model("home/.ollama/models/blobs/sha256-" DIGEST, 4);
    make_manifest("home/.ollama/models/manifests/registry.ollama.ai/library/olla/1b", DIGEST);
    make_manifest("home/.ollama/models/manifests/registry.ollama.ai/library/olla/latest", DIGEST);
    make_model("home/.lmstudio/models/pub/mod/studio.gguf", 5);
    make_model("home/here.gguf", 6);

    models_find(&list);
    assert_int_equal(list.n, 6);
    assert_listed(&list, 0, "own", "fader", 9);
    assert_listed(&list, 1, "camel", "llama.cpp", 11);
    assert_listed(&list, 2, "here", "here", 14);
    assert_listed(&list, 3, "Hugging", "Hugging Face", 10);
    assert_string_equal(list.items[4].where, "Ollama");
    assert_true(strncmp(list.items[4].name, "olla:", 5) == 0);
    assert_listed(&list, 5, "studio", "LM Studio", 13);
    model_file_list_done(&list);
}

static void test_environment(void **state)
{
    struct model_file_list list;
    struct str dir = STR_INIT;
    (void)state;

    make_model("hub/models--a--b/snapshots/r/deep/one.gguf", 1);
    make_model("llama/two.gguf", 2);
    make_model("llama/models--c--d/snapshots/r/three.gguf", 3);
    make_model("ollama/blobs/sha256-" DIGEST, 4);
    make_manifest("ollama/manifests/example.org/me/four/tag", DIGEST);
    str_add_format(&dir, "%s/hub", folder);
    setenv("HF_HUB_CACHE", str_text(&dir), 1);
    str_clear(&dir);
    str_add_format(&dir, "%s/llama", folder);
    setenv("LLAMA_CACHE", str_text(&dir), 1);
    str_clear(&dir);
    str_add_format(&dir, "%s/ollama", folder);
    setenv("OLLAMA_MODELS", str_text(&dir), 1);
    models_find(&list);
    assert_int_equal(list.n, 4);
    assert_listed(&list, 0, "example.org/me/four:tag", "Ollama", 12);
    assert_listed(&list, 1, "one", "Hugging Face", 9);
    assert_listed(&list, 2, "three", "llama.cpp", 11);
    assert_listed(&list, 3, "two", "llama.cpp", 10);
    model_file_list_done(&list);

    unsetenv("HF_HUB_CACHE");
    setenv("HF_HOME", folder, 1);
    models_find(&list);
    assert_int_equal(list.n, 4);
    model_file_list_done(&list);
    str_done(&dir);
}

static void test_split(void **state)
{
    struct model_file_list list;
    (void)state;

    make_model("home/big-00001-of-00003.gguf", 10);
    make_model("home/big-00002-of-00003.gguf", 20);
    make_model("home/big-00003-of-00003.gguf", 30);
    make_model("home/mmproj-big.gguf", 1);
    models_find(&list);
    assert_int_equal(list.n, 1);
    assert_listed(&list, 0, "big", "here", 18 + 28 + 38);
    assert_non_null(strstr(list.items[0].path, "big-00001-of-00003.gguf"));
    model_file_list_done(&list);
}

/* Loops of links, what is no model, a FIFO, a manifest that points out of its store. */
static void test_hostile(void **state)
{
    struct model_file_list list;
    (void)state;

    run("mkdir -p %s/.lmstudio/models && ln -s . %s/.lmstudio/models/loop && "
        "ln -s .. %s/.lmstudio/models/up && mkfifo %s/fifo.gguf",
        home, home, home, home);
    make_file("home/text.gguf", "not a model");
    make_file("home/.gguf", "GGUF");
    make_file("home/short.gguf", "GG");
    run("ln -s nowhere %s/dangling.gguf", home);
    make_model("home/.ollama/secret", 1);
    make_manifest("home/.ollama/models/manifests/h/n/m/escape", "../../secret");
    /* as long as a digest, but a path; hexadecimal, but too short; and a blob that is a FIFO */
    make_model("home/.ollama/models/blobs/sha256-abcd", 2);
    make_manifest("home/.ollama/models/manifests/h/n/m/short", "abcd");
    run("mkdir -p %s/.ollama/models/blobs/sha256-x", home);
    make_manifest("home/.ollama/models/manifests/h/n/m/long",
                  "x/../..//./././././././././././././././././././././././../secret");
    /* a digest, and a way out behind it */
    run("mkdir -p %s/.ollama/models/blobs/sha256-0" DIGEST_TAIL, home);
    make_manifest("home/.ollama/models/manifests/h/n/m/tail", "0" DIGEST_TAIL "/../../../secret");
    make_manifest("home/.ollama/models/manifests/h/n/m/fifo", DIGEST);
    run("mkfifo %s/.ollama/models/blobs/sha256-" DIGEST, home);
    make_file("home/.ollama/models/manifests/h/n/m/garbage", "{\"layers\":[{\"mediaType\":3}]}");
    make_file("home/.ollama/models/manifests/h/n/m/nothing", "]");
    models_find(&list);
    assert_int_equal(list.n, 0);
    model_file_list_done(&list);

    make_model("home/.lmstudio/models/real.gguf", 1);
    models_find(&list);
    assert_int_equal(list.n, 1);
    model_file_list_done(&list);
}

static void assert_resolves(const char *name, const char *want)
{
    struct error err = {""};
    char *path = models_resolve(name, &err);

    if (path == NULL || strstr(path, want) == NULL)
        fail_msg("%s gave %s", name != NULL ? name : "(none)", path != NULL ? path : err.text);
    free(path);
}

static void assert_no_model(const char *name, const char *why)
{
    struct error err = {""};
    char *path = models_resolve(name, &err);

    if (path != NULL || strstr(err.text, why) == NULL)
        fail_msg("%s gave %s", name != NULL ? name : "(none)", path != NULL ? path : err.text);
}

static void test_resolve(void **state)
{
    (void)state;
    assert_no_model(NULL, "no model found: `./bootstrap model'");
    make_model("home/.lmstudio/models/p/m/Alpha-1B.gguf", 1);
    assert_resolves(NULL, "Alpha-1B.gguf"); /* the only one */
    make_model("home/.lmstudio/models/p/m/Alpha-7B.gguf", 2);
    make_model("home/.lmstudio/models/p/m/alpha.gguf", 3);
    assert_no_model(NULL, "there are 3 models");
    assert_resolves("7b", "Alpha-7B.gguf");
    assert_resolves("ALPHA", "/alpha.gguf"); /* the whole name before a part of it */
    assert_no_model("alpha-", "model alpha-: it could be Alpha-1B, Alpha-7B");
    assert_no_model("beta", "model beta: no such file, and no model found has it in its name");
    assert_no_model("./beta.gguf", "model ./beta.gguf: No such file");
    assert_no_model(".", "a folder");
    make_model("home/mine.gguf", 4);
    assert_resolves("mine.gguf", "mine.gguf");
    make_model("home/.cache/fader/models/SmolLM2-135M-Instruct.Q4_1.gguf", 5);
    assert_resolves(NULL, "/.cache/fader/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    make_model("home/.lmstudio/models/q/m/alpha.gguf", 6); /* two of one name: their paths */
    assert_no_model("alpha", "/q/m/alpha.gguf");
}

static void test_explain(void **state)
{
    struct str s = STR_INIT;
    int lines = 0;
    (void)state;

    models_explain(&s);
    for (const char *c = str_text(&s); *c != '\0'; c++)
        lines += *c == '\n';
    assert_true(lines > 5 && lines <= 20);
    assert_non_null(strstr(str_text(&s), "./bootstrap model"));
    assert_non_null(strstr(str_text(&s), "fader -m FILE"));
    assert_non_null(strstr(str_text(&s), "SmolLM2-135M-Instruct.Q4_1.gguf"));
    assert_non_null(strstr(str_text(&s), home));
    str_done(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_xdg),   TEST(test_data),    TEST(test_layouts), TEST(test_environment),
        TEST(test_split), TEST(test_hostile), TEST(test_resolve), TEST(test_explain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
