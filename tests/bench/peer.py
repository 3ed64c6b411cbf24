"""llama.cpp beside fader: what compare.py asks of it, through llama-cpp-python's C bindings.

  peer.py serve MODEL THREADS     requests as JSON lines on standard input, answers as JSON lines
  peer.py start MODEL THREADS     milliseconds from nothing to the first token's logits
  peer.py memory MODEL THREADS N  megabytes that it comes to hold for N tokens
  peer.py quantize IN OUT TYPE    another type of a model file
  peer.py random OUT LIKE         a llama of 1.07 billion random weights, F16, with LIKE's tokenizer
  peer.py version
  peer.py features                the instruction sets that this llama.cpp uses

Decoding is the forward pass and its logits, without sampling, as in `fader bench`. A served model keeps
the cache of its longest decode: a shorter depth is its beginning, so nothing is filled twice."""
import ctypes
import json
import random
import sys
import time

import llama_cpp as ll

BATCH = 512
START_PROMPT = 16
LANES_PROMPT = 64
FILE_TYPES = {"F16": 1, "Q4_0": 2, "Q8_0": 7, "Q4_K_M": 15, "Q6_K": 18}


def fail(text):
    raise SystemExit(f"peer: {text}")


def load(path):
    model = ll.llama_model_load_from_file(path.encode(), ll.llama_model_default_params())
    return model or fail(f"llama.cpp cannot load {path}")


class Context:
    def __init__(self, model, threads, size, sequences=1, cache="f16"):
        params = ll.llama_context_default_params()
        if cache == "q8_0":
            params.type_k = params.type_v = ll.GGML_TYPE_Q8_0
            params.flash_attn_type = ll.LLAMA_FLASH_ATTN_TYPE_ENABLED  # without it V cannot be quantised
        params.n_ctx = size
        params.n_batch = params.n_ubatch = BATCH
        params.n_threads = params.n_threads_batch = threads
        params.n_seq_max = sequences
        params.kv_unified = True
        self.context = ll.llama_init_from_model(model, params) or fail("no context")
        self.memory = ll.llama_get_memory(self.context)
        self.length = 0
        self.size = size

    def free(self):
        ll.llama_free(self.context)

    def clear(self):
        ll.llama_memory_clear(self.memory, True)
        self.length = 0

    def run(self, tokens):
        """The tokens after those in the cache; logits of the last."""
        for at in range(0, len(tokens), BATCH):
            part = tokens[at:at + BATCH]
            array = (ll.llama_token * len(part))(*part)
            if ll.llama_decode(self.context, ll.llama_batch_get_one(array, len(part))) != 0:
                fail("llama_decode failed")
            self.length += len(part)
        ll.llama_get_logits_ith(self.context, -1)

    def hold(self, tokens):
        """Exactly these in the cache, of which some may already be there."""
        if self.length > len(tokens):
            ll.llama_memory_seq_rm(self.memory, 0, len(tokens), -1)
            self.length = len(tokens)
        if self.length < len(tokens):
            self.run(tokens[self.length:])


class Server:
    def __init__(self, path, threads):
        self.threads = threads
        self.model = load(path)
        vocabulary = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(self.model))
        chosen = random.Random(0)
        self.tokens = [chosen.randrange(100, min(vocabulary, 40000)) for _ in range(16384)]
        self.contexts = {}

    def context(self, name, size, sequences=1, cache="f16"):
        """Kept from request to request; made anew when it has become too small."""
        old = self.contexts.get(name)
        if old is None or old.size < size:
            if old is not None:
                old.free()
            self.contexts[name] = Context(self.model, self.threads, size, sequences, cache)
        return self.contexts[name]

    def prefill(self, n):
        context = self.context("prefill", n)
        context.clear()
        start = time.perf_counter()
        context.run(self.tokens[:n])
        return n / (time.perf_counter() - start)

    def decode(self, depth, n, deepest, cache="f16"):
        context = self.context("decode " + cache, deepest + n + 64, cache=cache)
        before = max(depth, 1)
        context.hold(self.tokens[:before])
        start = time.perf_counter()
        for token in self.tokens[before:before + n]:
            context.run([token])
        return n / (time.perf_counter() - start)

    def lanes(self, lanes, n):
        context = self.context("lanes", LANES_PROMPT + lanes * n + 64, lanes)
        context.clear()
        context.run(self.tokens[:LANES_PROMPT])
        for lane in range(1, lanes):
            ll.llama_memory_seq_cp(context.memory, 0, lane, -1, -1)
        batch = ll.llama_batch_init(lanes, 0, 1)
        batch.n_tokens = lanes
        start = time.perf_counter()
        for step in range(n):
            for lane in range(lanes):
                batch.token[lane] = self.tokens[step * lanes + lane]
                batch.pos[lane] = LANES_PROMPT + step
                batch.n_seq_id[lane] = 1
                batch.seq_id[lane][0] = lane
                batch.logits[lane] = 1
            if ll.llama_decode(context.context, batch) != 0:
                fail("llama_decode failed")
            ll.llama_get_logits_ith(context.context, lanes - 1)
        seconds = time.perf_counter() - start
        ll.llama_batch_free(batch)
        return lanes * n / seconds


def serve(path, threads):
    server = Server(path, int(threads))
    server.prefill(8)  # the first run pages the weights in
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(server, request.pop("what"))(**request)), flush=True)


def start(path, threads):
    began = time.perf_counter()
    context = Context(load(path), int(threads), 2048)
    context.run(list(range(100, 100 + START_PROMPT)))
    print(1e3 * (time.perf_counter() - began))


def status_mb(key):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def memory(path, threads, n):
    before = status_mb("VmRSS")  # Python's own
    context = Context(load(path), int(threads), int(n) + 64)
    context.run(list(range(100, 100 + int(n))))
    print(status_mb("VmHWM") - before)


def quantize(source, target, kind):
    params = ll.llama_model_quantize_default_params()
    params.allow_requantize = True
    params.ftype = FILE_TYPES[kind]
    if ll.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params)) != 0:
        fail(f"cannot make {kind}")


def write_random(target, like):
    import gguf
    import numpy

    layers, width, heads, kv_heads, head, feed = 22, 2048, 32, 4, 64, 5632
    reader = gguf.GGUFReader(like)
    writer = gguf.GGUFWriter(target, "llama")
    generator = numpy.random.default_rng(1)
    for key, field in reader.fields.items():
        if not key.startswith("tokenizer."):
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    words = len(reader.fields["tokenizer.ggml.tokens"].contents())
    writer.add_name("llama-1B-random")
    writer.add_block_count(layers)
    writer.add_context_length(8192)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(feed)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(head)
    writer.add_vocab_size(words)

    def matrix(name, rows, cols):
        values = generator.standard_normal((rows, cols), dtype=numpy.float32)
        writer.add_tensor(name + ".weight", (values / numpy.sqrt(cols)).astype(numpy.float16))

    def ones(name):
        writer.add_tensor(name + ".weight", numpy.ones(width, dtype=numpy.float32))

    matrix("token_embd", words, width)
    ones("output_norm")
    for layer in range(layers):
        block = f"blk.{layer}."
        ones(block + "attn_norm")
        ones(block + "ffn_norm")
        matrix(block + "attn_q", heads * head, width)
        matrix(block + "attn_k", kv_heads * head, width)
        matrix(block + "attn_v", kv_heads * head, width)
        matrix(block + "attn_output", width, heads * head)
        matrix(block + "ffn_gate", feed, width)
        matrix(block + "ffn_up", feed, width)
        matrix(block + "ffn_down", width, feed)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def version():
    print(ll.__version__)


def features():
    """Those of the processor, such as "AVX2 FMA F16C", without what else llama.cpp lists."""
    listed = ll.llama_print_system_info().decode().split(":", 1)[-1].split("|")
    names = [part.split("=")[0].strip() for part in listed if part.strip().endswith("= 1")]
    print(*(name for name in names if name not in ("LLAMAFILE", "OPENMP", "REPACK", "ACCELERATE")))


COMMANDS = {"serve": serve, "start": start, "memory": memory, "quantize": quantize,
            "random": write_random, "version": version, "features": features}

if __name__ == "__main__":
    ll.llama_backend_init()
    silent = ll.llama_log_callback(lambda level, text, data: None)
    ll.llama_log_set(silent, ctypes.c_void_p(0))
    COMMANDS[sys.argv[1]](*sys.argv[2:])
