#!/usr/bin/env python3
"""fader beside llama.cpp, in one run, alternating: ratios, never a pass or fail.

  compare.py [--fader PATH] [--model FILE] [-t THREADS] [-p N] [-n N] [-d DEPTH] [-r ROUNDS]

Needs llama-cpp-python and numpy (pip install llama-cpp-python numpy), else it says so and runs fader alone. Both
sides decode without sampling; each round runs one after the other, so that a change of the machine's
speed meets both. Reported: the median of each, and of the ratios of the rounds."""
import argparse
import json
import os
import statistics
import subprocess
import time

try:
    import llama_cpp
    import numpy
except ImportError:
    llama_cpp = None


def default_model():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "fader/models/SmolLM2-135M-Instruct.Q4_1.gguf")


class Fader:
    def __init__(self, options):
        self.options = options

    def measure(self):
        o = self.options
        command = [o.fader, "bench", "--json", "-m", o.model, "-p", str(o.p), "-n", str(o.n),
                   "-d", str(o.d), "-t", str(o.t), "-r", "1"]
        result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return result["prefill"]["tps"], result["decode"]["tps"]


class Peer:
    """llama.cpp through its C interface; one model and context for all rounds."""

    def __init__(self, options):
        self.options = options
        llama_cpp.llama_backend_init()
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.quiet, None)
        self.model = llama_cpp.llama_model_load_from_file(
            options.model.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"compare: llama.cpp cannot load {options.model}")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = max(options.p, options.d) + options.n + 64
        params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = options.t
        self.context = llama_cpp.llama_init_from_model(self.model, params)

    def run(self, ids):
        for start in range(0, len(ids), 512):
            part = ids[start:start + 512]
            array = (llama_cpp.llama_token * len(part))(*part)
            if llama_cpp.llama_decode(self.context,
                                      llama_cpp.llama_batch_get_one(array, len(part))) != 0:
                raise SystemExit("compare: llama_decode failed")
        llama_cpp.llama_get_logits_ith(self.context, -1)

    def clear(self):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)

    def measure(self):
        o = self.options
        ids = [int(i) for i in numpy.random.default_rng(0).integers(100, 40000, max(o.p, o.d, o.n) + 1)]
        self.clear()
        start = time.perf_counter()
        self.run(ids[:o.p])
        prefill = o.p / (time.perf_counter() - start)
        self.clear()
        self.run(ids[:max(o.d, 1)])
        start = time.perf_counter()
        for token in ids[:o.n]:
            self.run([token])
        return prefill, o.n / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fader", default="./fader")
    parser.add_argument("--model", default=default_model())
    parser.add_argument("-t", type=int, default=2, help="threads of both")
    parser.add_argument("-p", type=int, default=512, help="tokens of the prefill")
    parser.add_argument("-n", type=int, default=64, help="tokens decoded")
    parser.add_argument("-d", type=int, default=0, help="tokens in the cache before that")
    parser.add_argument("-r", type=int, default=5, help="rounds")
    options = parser.parse_args()

    sides = {"fader": Fader(options)}
    if llama_cpp is None:
        print("compare: llama-cpp-python is not installed: fader alone")
    else:
        sides["llama.cpp"] = Peer(options)
    rounds = []
    for _ in range(options.r):
        rounds.append({name: side.measure() for name, side in sides.items()})
    for name in sides:
        prefill, decode = (statistics.median(r[name][i] for r in rounds) for i in (0, 1))
        print(f"{name:10} prefill {options.p}: {prefill:8.1f} tokens/s   "
              f"decode at {options.d}: {decode:7.1f} tokens/s")
    if len(sides) == 2:
        prefill, decode = (statistics.median(r["fader"][i] / r["llama.cpp"][i] for r in rounds)
                           for i in (0, 1))
        print(f"{'ratio':10} prefill {options.p}: {prefill:8.2f}            "
              f"decode at {options.d}: {decode:7.2f}")


main()
