/* The engine: a model file, its tokenizer, and sessions that run it. No interface, no threads of
 * the caller's; everything that can go wrong comes back as a struct error.
 *
 * Life cycle:
 *   model_open      maps and checks the file, reads metadata; milliseconds. Enough for model_info,
 *                   the tokenizer, the ledger.
 *   model_load      repacks the weights and starts the compute threads. Needed before a session.
 *   session_new     one context with its KV cache; session_fork shares the common blocks.
 *   session_eval    runs tokens; session_logits then holds the last position's.
 *   session_free, model_close in the reverse order.
 *
 * A model is read-only after model_load; its sessions are driven by one thread at a time (they
 * share the compute pool). A tokenizer is immutable and may be used by any thread.
 *
 * Determinism: for one kernel set and build, the logits after the same tokens are bit-identical
 * whatever the thread count, the batch split, the reuse of a prefix, or the lanes that ran beside.
 */
#ifndef FADER_ENGINE_ENGINE_H
#define FADER_ENGINE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

/* ---- model ---------------------------------------------------------------------------------- */

struct model;

struct model_info {
    const char *path;          /* as opened */
    const char *label;         /* what the desk calls it: "SmolLM2-135M-Instruct" */
    const char *arch;          /* "llama" */
    const char *type;          /* of most weights: "Q4_1" */
    const char *chat_template; /* the file's own (Jinja text), or NULL */
    const char *tokenizer;     /* tokenizer.ggml.model: "gpt2" */
    const char *languages;     /* "en", comma-separated, or "" */
    int32_t n_layer, n_embd, n_head, n_kv_head, head_dim, n_ff, n_vocab;
    int32_t ctx_train; /* positions the model was made for */
    uint64_t n_params;
    uint64_t weight_bytes; /* tensor data in the file */
    bool has_sampling[8];  /* by enum knob: general.sampling.* present ... */
    double sampling[8];    /* ... and its value */
};

/* Opens a GGUF v2 or v3 file (the first of a split set opens all). NULL with `err` on anything that
 * is not exactly right: never a crash, a hang or an allocation that the file's size does not bear.
 */
struct model *model_open(const char *path, struct error *err);
void model_close(struct model *m); /* NULL is fine */
const struct model_info *model_get_info(const struct model *m);

struct model_load_options {
    int threads;    /* 0: one per physical core that this process may use */
    bool no_repack; /* run from the map: less memory, slower */
    void (*progress)(void *ctx, double share); /* may be NULL; called from the loading thread */
    void *progress_ctx;
    const atomic_bool *cancel; /* may be NULL; polled between pieces of a megabyte or so */
    uint64_t room;             /* bytes of memory that there are; 0: what the system says */
};

/* Places the weights and starts the threads. They are repacked, unless that was not wanted or the
 * model would not fit twice into what memory there is: in the file, which stays cached, and in the
 * copy. Then they are used in place, with the same results. False with `err` when a weight type is
 * not known (named), memory lacks, or `cancel` was set: then the model is as model_open made it. */
bool model_load(struct model *m, const struct model_load_options *options, struct error *err);
bool model_is_repacked(const struct model *m);
const char *model_notice(const struct model *m); /* what a user should know of that, or NULL */
int model_threads(const struct model *m);

/* Bytes of weights that one decode step reads: all but an embedding that is only looked up. */
uint64_t model_decode_bytes(const struct model *m);

/* "avx2", "scalar": the kernel set that this process uses (CPUID, or FADER_KERNELS). */
const char *engine_kernels(void);

/* ---- tokenizer ------------------------------------------------------------------------------ */

struct tokenizer;

/* A piece of input. Only SPAN_MARKUP is searched for special tokens (<|im_end|>, ...): it is
 * the template's own text. SPAN_TEXT is what a user or a model wrote. SPAN_TOKENS is ids as they
 * are. */
enum span_kind { SPAN_TEXT, SPAN_MARKUP, SPAN_TOKENS };
struct span {
    enum span_kind kind;
    const char *text; /* not NUL-terminated; borrowed */
    size_t len;
    const int32_t *tokens; /* borrowed */
    size_t n_tokens;
};

struct token_list {
    int32_t *ids; /* owned; token_list_done frees */
    size_t n, cap;
};
void token_list_add(struct token_list *list, int32_t id);
void token_list_done(struct token_list *list);

/* Builds the tokenizer of `m`; belongs to the model, built once, NULL with `err` when fader lacks
 * that kind ("tokenizer 'llama' (SentencePiece) is not supported yet"). */
const struct tokenizer *model_tokenizer(struct model *m, struct error *err);

enum tokenize_flags {
    TOKENIZE_BOS = 1, /* put BOS in front where the file asks for it, never twice */
    TOKENIZE_OPEN = 2 /* the last text may go on: only the tokens that then stay as they are (but
                         for a user-defined token that is half written) */
};

/* Appends the ids of `spans` to `out`. Text and markup side by side are tokenized as one text (a
 * word may cross from one to the other, as when the model was trained); control tokens are found
 * only where all of them is markup. Tokens that the file calls user-defined are words of the
 * vocabulary and are found in text too. Invalid UTF-8 is encoded byte by byte; decoding gives every
 * input back, but for bytes that the vocabulary has no token for: those of a character are left
 * out, any other becomes U+FFFD. Any thread. */
void tokenizer_encode(const struct tokenizer *t, const struct span *spans, size_t n_spans,
                      unsigned flags, struct token_list *out);

/* The bytes that a token stands for (may be part of a character). "" with *len 0 for an id out of
 * range; control tokens give their own text. Borrowed from the tokenizer; not NUL-terminated. */
const char *tokenizer_piece(const struct tokenizer *t, int32_t id, size_t *len);

bool tokenizer_is_eog(const struct tokenizer *t, int32_t id);     /* ends a generation */
bool tokenizer_is_control(const struct tokenizer *t, int32_t id); /* control or unknown: not text */
const uint8_t *tokenizer_punctuation(const struct tokenizer *t);  /* [n_vocab], sampling-spec 3.1 */
int32_t tokenizer_bos(const struct tokenizer *t);                 /* -1: none */
int32_t tokenizer_eos(const struct tokenizer *t);                 /* -1: none */
int32_t tokenizer_find(const struct tokenizer *t,
                       const char *text); /* id of exactly this token, or -1 */

/* Streams token bytes as whole characters: bytes of an unfinished one wait. */
struct detokenizer {
    char held[4];
    size_t n_held;
};

/* Appends what `bytes` complete to `out` as valid UTF-8 (U+FFFD for what cannot be one). When
 * something was invalid and `raw` is not NULL, the true bytes are appended there. */
void detokenizer_push(struct detokenizer *d, const char *bytes, size_t len, struct str *out,
                      struct str *raw);
void detokenizer_flush(struct detokenizer *d, struct str *out, struct str *raw); /* at the end */

/* ---- session -------------------------------------------------------------------------------- */

struct session;

enum cache_type { CACHE_F16, CACHE_Q8_0 };

struct session_options {
    int32_t ctx_size;   /* 0: the model's own, at most SESSION_CTX_DEFAULT_MAX */
    int32_t batch_size; /* 0: 512: prompt tokens a batch */
    enum cache_type cache_type;
};
enum { SESSION_CTX_DEFAULT_MAX = 8192, SESSION_BATCH_DEFAULT = 512 };

/* An empty context of a loaded model, which must outlive it. NULL with `err` when there is no
 * memory for the KV cache. */
struct session *session_new(struct model *m, const struct session_options *options,
                            struct error *err);
void session_free(struct session *s);

/* A copy that shares every KV block until one of them writes it. NULL with `err` when
 * memory lacks. */
struct session *session_fork(const struct session *s, struct error *err);

int32_t session_ctx_size(const struct session *s);
int32_t session_length(const struct session *s);          /* tokens in the cache */
const int32_t *session_tokens(const struct session *s);   /* [length] */
void session_truncate(struct session *s, int32_t length); /* forgets the rest; logits become void */

/* The length of the longest prefix shared with `ids`. */
int32_t session_common(const struct session *s, const int32_t *ids, size_t n);

/* Truncates to that prefix, leaving at least one of the ids to run; returns its length. */
int32_t session_reuse(struct session *s, const int32_t *ids, size_t n);

struct eval_hooks {
    const atomic_bool *cancel;                              /* may be NULL; polled inside batches */
    void (*progress)(void *ctx, size_t done, size_t total); /* after every batch; may be NULL */
    /* With it, logits of every position [n_vocab] are handed out in order; may be NULL. The first
     * call is for position session_length at the call. Valid during the call only. */
    void (*logits)(void *ctx, size_t index, const float *logits);
    void *ctx;
};

enum eval_result { EVAL_OK, EVAL_CANCELLED, EVAL_FULL, EVAL_FAILED };

/* Runs `n` > 0 tokens after those in the cache. EVAL_CANCELLED: the batches that were finished
 * stay, the one under way is rolled back. EVAL_FULL: they do not fit; nothing ran. EVAL_FAILED:
 * `err` (memory, or the model file was cut short under the map). */
enum eval_result session_eval(struct session *s, const int32_t *ids, size_t n,
                              const struct eval_hooks *hooks, struct error *err);

/* One decode step of several sessions of one model at once: ids[i] goes to sessions[i], n <= 16. */
enum eval_result session_eval_lanes(struct session **sessions, const int32_t *ids, int n,
                                    struct error *err);

const float *session_logits(const struct session *s); /* [n_vocab] after the last token, or NULL */

/* ---- ledger --------------------------------------------------------------------------------- */

struct ledger {
    int32_t layers, heads, kv_heads, head_dim, ctx;
    double bytes_per_element; /* f16 2; q8_0 34/32 */
    uint64_t bytes_per_token, total_bytes, mha_total_bytes;
};
/* What the KV cache of these shapes takes: 2 (K and V) x layers x kv_heads x head_dim x bytes per
 * element x ctx. All numbers at least 1. */
struct ledger ledger_compute(int32_t layers, int32_t heads, int32_t kv_heads, int32_t head_dim,
                             int32_t ctx, enum cache_type type);
struct ledger model_ledger(const struct model *m, int32_t ctx, enum cache_type type);
uint64_t session_kv_used(const struct session *s); /* bytes of blocks held, shared ones whole */

#endif
