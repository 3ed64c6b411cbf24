/* The engine behind the generation thread, on a tiny generated model whose file is gone once it is
 * loaded. One token is one byte (but for some words after a blank), and the weights are random:
 * the text means nothing. */
#ifndef FADER_TESTS_LOCAL_RIG_H
#define FADER_TESTS_LOCAL_RIG_H

#include "rig.h"

#include <unistd.h>

#include "tiny_gguf.h"

enum { CTX = 256 };

static const struct tiny_gguf_options tiny = {
    .n_ctx = CTX,
    .seed = 3,
    .n_extra_tokens = 4000, /* end tokens are two in four thousand: no answer here meets one */
    .chat_template = "{% for m in messages %}<|im_start|>{{ m['role'] }}...<|im_end|>{% endfor %}",
};

static inline void open_local(struct rig *r, const struct tiny_gguf_options *options,
                              struct local_options local)
{
    char path[] = "/tmp/fader-tiny-XXXXXX";
    struct error err = {""};
    int fd = mkstemp(path);

    rig_init(r);
    assert_true(fd >= 0);
    close(fd);
    assert_true(tiny_gguf_write(path, options));
    local.model_path = path;
    r->b = local_backend_new(&local, &r->control, &err);
    if (r->b == NULL)
        fail_msg("%s", err.text);
    rig_await(r, EVENT_READY);
    unlink(path);
}

static inline void open_tiny(struct rig *r, const struct tiny_gguf_options *options, int threads,
                             int32_t batch)
{
    open_local(r, options,
               (struct local_options){.load = {.threads = threads},
                                      .session = {.ctx_size = CTX, .batch_size = batch}});
}

/* `n` times "x", a message of n tokens. */
static inline const char *filler(size_t n)
{
    static char text[4096];

    memset(text, 'x', n);
    text[n] = '\0';
    return text;
}

#endif
