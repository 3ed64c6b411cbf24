#!/usr/bin/env python3
"""fader beside llama.cpp: the same files, in turn, on this computer. What `make bench` runs.

Each round runs `fader bench` and then llama.cpp (peer.py) on the same work; reported are the medians of
the rounds, their ratio, the bar that the project has set itself, and fader's share of the limit that `fader
bench` measured in the same runs. Results are kept in a file as they come: what was interrupted goes on where
it was, and --fresh begins anew. A figure is never a pass or a fail.

llama.cpp comes by llama-cpp-python: from $PEER_PYTHON, or from the environment that --setup makes. The other
types of the model, and a larger one of random weights, are made by it once and kept in the cache folder.

With --kernels avx2 both are held to AVX2, on processors that could do more: llama.cpp by a build of its own (--setup
--kernels avx2 makes it), fader by FADER_KERNELS. Those results have a file and a section of their own."""
import argparse
import datetime
import json
import os
import pty
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fader")
DEFAULT_MODEL = os.path.join(CACHE, "models/SmolLM2-135M-Instruct.Q4_1.gguf")
# How llama.cpp is built, for what --kernels says; each build has an environment of its own.
BUILDS = {
    "native": "-DGGML_NATIVE=ON",
    "avx2": "-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON "
            "-DGGML_AVX512=OFF -DGGML_AVX_VNNI=OFF",
}

# Each: how it is called here, and its bars as ratios: of decoding by depth, of prefill by length, of lanes.
# None: for every depth or length that has none of its own.
MODELS = [
    ("SmolLM2-135M.Q4_1", {0: 2.2, 2048: 4, 4096: 5, 7000: 6}, {512: 2.5, 4096: 2.2}, 3.5),
    ("SmolLM2-135M.Q4_0", {None: 1.8}, {None: 1.8}, None),
    ("SmolLM2-135M.Q8_0", {None: 1.8}, {None: 1.5}, None),
    ("SmolLM2-135M.Q4_K_M", {None: 1.8}, {None: 1.8}, None),
    ("SmolLM2-135M.F16", {None: 1.8}, {None: 1.8}, None),
    ("llama-1B.Q4_K_M", {None: 1.7}, {None: 1.5}, None),
    ("llama-1B.Q6_K", {None: 1.7}, {None: 1.5}, None),
    ("llama-1B.Q8_0", {None: 1.4}, {None: 1.5}, None),
]
FIRST = MODELS[0][0]
LANES = 4
MEMORY_TOKENS = 2048
MAX_START_MS, MAX_FRAME_MS, MAX_BESIDE_MB, MAX_SLOWER, MIN_SHARE = 250, 50, 40, 2.2, 0.8
MAX_SAMPLE_MS = {49152: 0.15, 262144: 0.6}


def say(text):
    print(f"[{datetime.datetime.now():%H:%M:%S}] {text}", file=sys.stderr, flush=True)


def fail(text):
    raise SystemExit(f"compare: {text}")


def output_of(command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


# ---- what is compared ---------------------------------------------------------------------------

class Fader:
    def __init__(self, program, threads, kernels):
        self.program = os.path.abspath(program)
        self.threads = str(threads)
        self.environment = dict(os.environ, FADER_DATA_DIR=os.path.join(HERE, "../.."))
        if kernels != "native":
            self.environment["FADER_KERNELS"] = kernels

    def bench(self, model, prefills, depths, n, lanes=0, cache="f16"):
        """The object of `fader bench --json`, of one repetition."""
        command = [self.program, "bench", "--json", "-m", model, "-t", self.threads, "-r", "1",
                   "-p", ",".join(map(str, prefills)) or "0", "-d", ",".join(map(str, depths)),
                   "-n", str(n), "--lanes", str(lanes), "--cache-type", cache]
        return json.loads(output_of(command, env=self.environment))

    def first_token_ms(self, model):
        """From the start of the program to the first byte of an answer."""
        start = time.perf_counter()
        with subprocess.Popen([self.program, "-m", model, "-t", self.threads, "--raw", "--temp", "0", "-n", "1",
                               "-p", "Once upon a time there was a small village by the sea, and in it"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment) as process:
            process.stdout.read(1)
            return 1e3 * (time.perf_counter() - start)

    def first_frame_ms(self, model):
        """From the start of the chat in a terminal to its first screen: the line that asks for input."""
        home = tempfile.mkdtemp()
        environment = dict(self.environment, TERM="xterm-256color", XDG_STATE_HOME=home, XDG_CONFIG_HOME=home)
        start = time.perf_counter()
        process, terminal = pty.fork()
        if process == 0:
            os.execve(self.program, [self.program, "-m", model, "--no-save"], environment)
        seen = b""
        while b"Ask something" not in seen:
            ready, _, _ = select.select([terminal], [], [], 10)
            data = os.read(terminal, 65536) if ready else b""
            if not data:
                fail("no first frame")
            seen += data
        took = time.perf_counter() - start
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)
        shutil.rmtree(home, ignore_errors=True)
        return 1e3 * took


class Peer:
    def __init__(self, python, threads):
        self.command = [python, os.path.join(HERE, "peer.py")]
        self.threads = str(threads)
        self.version = self.run("version").strip()
        self.features = self.run("features").strip()

    def run(self, *words):
        return output_of(self.command + list(words))

    def serve(self, model):
        return Served(self.command + ["serve", model, self.threads])


class Served:
    """A model held by llama.cpp, for as long as its rounds last."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else fail("llama.cpp ended")

    def ask(self, what, **arguments):
        print(json.dumps(dict(arguments, what=what)), file=self.process.stdin, flush=True)
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- what it takes ------------------------------------------------------------------------------

def peer_home(kernels):
    return os.path.join(CACHE, "bench", "peer" if kernels == "native" else "peer-" + kernels)


def set_up(kernels):
    """An environment with llama.cpp built for this computer, or for less than it can do."""
    home = peer_home(kernels)
    python = os.path.join(home, "bin/python")
    say(f"making a Python environment in {home}")
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    say("installing gguf and numpy")
    subprocess.run([python, "-m", "pip", "install", "-q", "gguf", "numpy"], check=True)
    say("building llama-cpp-python: ten minutes or more, and a C++ compiler is needed")
    # No cache: it may hold a wheel that was built for other instructions.
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-cache-dir", "--no-binary", "llama-cpp-python",
                    "llama-cpp-python"], check=True, env=dict(os.environ, CMAKE_ARGS=BUILDS[kernels]))
    say("done: make bench uses it")


def find_peer(kernels, threads):
    own = os.path.join(peer_home(kernels), "bin/python")
    python = os.environ.get("PEER_PYTHON") or (own if os.path.exists(own) else None)
    if python is None:
        say("no llama.cpp: fader alone. `make bench-setup` builds it, or PEER_PYTHON names a Python that has it.")
        return None
    peer = Peer(python, threads)
    if kernels == "avx2" and "AVX512" in peer.features:
        fail(f"{python}: this llama.cpp uses {peer.features}; `make bench-setup BENCH_FLAGS='--kernels avx2'` "
             "builds one that does not")
    return peer


def model_file(name, folder, peer):
    """The path of a model, made if it is not there yet; None when it cannot be."""
    if name == FIRST:
        return DEFAULT_MODEL if os.path.exists(DEFAULT_MODEL) else None
    path = os.path.join(folder, name + ".gguf")
    if os.path.exists(path) or peer is None:
        return path if os.path.exists(path) else None
    family, kind = name.split(".")
    source = os.path.join(folder, family + ".F16.gguf")
    os.makedirs(folder, exist_ok=True)
    half = path + ".part"
    if kind == "F16" and family == "llama-1B":
        say(f"making {name}: random weights, 2.1 GB")
        peer.run("random", half, DEFAULT_MODEL)
    elif kind == "F16":
        say(f"making {name}")
        peer.run("quantize", DEFAULT_MODEL, half, kind)
    elif model_file(family + ".F16", folder, peer) is None:
        return None
    else:
        say(f"making {name}")
        peer.run("quantize", source, half, kind)
    os.replace(half, path)
    return path


# ---- measuring ----------------------------------------------------------------------------------

class Results:
    """{model: {work: {"fader": [..], "peer": [..], ...}}}, in a file from the first figure on. What was
    measured under other conditions is not gone on with."""

    def __init__(self, path, fresh, conditions):
        self.path = path
        self.all = {}
        if os.path.exists(path) and not fresh:
            with open(path) as file:
                self.all = json.load(file)
        if self.all.get("conditions") != conditions:
            self.all = {"conditions": conditions, "date": f"{datetime.date.today()}"}

    def add(self, model, work, **values):
        entry = self.all.setdefault(model, {}).setdefault(work, {})
        for key, value in values.items():
            entry.setdefault(key, []).append(value)

    def rounds(self, model):
        return self.all.get(model, {}).get("rounds", 0)

    def save(self):
        with open(self.path + ".part", "w") as file:
            json.dump(self.all, file, indent=1)
        os.replace(self.path + ".part", self.path)


def measure_fader(results, name, fader, path, work):
    report = fader.bench(path, work["prefills"], work["depths"], work["n"], LANES)
    for rate in report["prefills"]:
        results.add(name, f"prefill {rate['n']}", fader=rate["tps"], share=rate["share"], by=rate["limited_by"])
    for rate in report["decodes"]:
        results.add(name, f"decode {rate['depth']}", fader=rate["tps"], share=rate["share"], by=rate["limited_by"])
    if work["q8_0"]:
        for rate in fader.bench(path, [], work["depths"], work["n"], cache="q8_0")["decodes"]:
            results.add(name, f"q8_0 {rate['depth']}", fader=rate["tps"], share=rate["share"], by=rate["limited_by"])
    results.add(name, "lanes", fader=report["lanes"]["tps_total"], share=report["share"]["lanes"],
                by=report["lanes"]["limited_by"])
    sampling = report["sampling"]
    results.add(name, "sampling", usual=sampling["default_ms"], worst=sampling["worst_ms"])
    for key, value in report["limits"].items():
        results.add(name, "limits", **{key: value})
    results.all[name]["about"] = {key: report[key] for key in ("cpu", "kernels", "threads", "weights_mb")}


def measure_peer(results, name, served, work):
    for n in work["prefills"]:
        results.add(name, f"prefill {n}", peer=served.ask("prefill", n=n))
    for depth in work["depths"]:
        tps = served.ask("decode", depth=depth, n=work["n"], deepest=max(work["depths"]))
        results.add(name, f"decode {depth}", peer=tps)
        if work["q8_0"]:
            own = served.ask("decode", depth=depth, n=work["n"], deepest=max(work["depths"]), cache="q8_0")
            results.add(name, f"q8_0 {depth}", peer=tps, own=own)
    results.add(name, "lanes", peer=served.ask("lanes", lanes=LANES, n=work["n"]))


def compare_model(results, name, fader, peer, path, work, rounds):
    done = results.rounds(name)
    if done >= rounds:
        say(f"{name}: done")
        return
    served = peer.serve(path) if peer is not None else None
    for i in range(done, rounds):
        say(f"{name}: round {i + 1} of {rounds}: fader")
        measure_fader(results, name, fader, path, work)
        if served is not None:
            say(f"{name}: round {i + 1} of {rounds}: llama.cpp")
            measure_peer(results, name, served, work)
        results.all[name]["rounds"] = i + 1
        results.save()
    if served is not None:
        served.close()


def compare_start(results, fader, peer, path, rounds):
    """Start and memory, of the default model."""
    if "memory" in results.all.get(FIRST, {}):
        say("start and memory: done")
        return
    say("start to first frame and first token")
    fader.first_token_ms(path)  # the file into the page cache
    for _ in range(2 * rounds + 1):
        results.add(FIRST, "frame", fader=fader.first_frame_ms(path))
        results.add(FIRST, "start", fader=fader.first_token_ms(path))
        if peer is not None:
            results.add(FIRST, "start", peer=float(peer.run("start", path, peer.threads)))
    say(f"memory for {MEMORY_TOKENS} tokens")
    report = fader.bench(path, [MEMORY_TOKENS - 64], [MEMORY_TOKENS - 64], 64)
    peer_mb = float(peer.run("memory", path, peer.threads, str(MEMORY_TOKENS))) if peer is not None else None
    results.add(FIRST, "memory", fader=report["rss_mb"], peer=peer_mb,
                allowed=report["weights_mb"] + report["kv_mb"] + MAX_BESIDE_MB)
    results.save()


def compare_sampling(results, fader, program):
    """The worst that any setting and any logits take, by tests/bench/sampling where it was built."""
    if "samplers" in results.all.get(FIRST, {}) or not os.path.exists(program):
        return
    say("sampling, all settings")
    for line in output_of([program], env=fader.environment).splitlines():
        words = line.split()
        if words[0] == "vocab":
            column = line.replace(" ms", "_ms").split().index("token_ms")
        else:
            results.add(FIRST, "samplers", **{words[0]: float(words[column])})
    results.save()


# ---- saying it ----------------------------------------------------------------------------------

def grouped(value, digits=0):
    return f"{value:,.{digits}f}"


def middle(entry, key):
    values = [v for v in entry.get(key, []) if v is not None]
    return statistics.median(values) if values else None


def verdict(reached):
    return "reached" if reached else "**missed**"


def bar_of(name, work):
    _, decode, prefill, lanes = next(m for m in MODELS if m[0] == name)
    if work == "lanes":
        return lanes
    kind, length = work.split()
    bars = prefill if kind == "prefill" else decode
    return bars.get(int(length), bars.get(None))


def title_of(work):
    if work == "lanes":
        return f"{LANES} lanes together"
    kind, length = work.split()
    if kind == "prefill":
        return f"prefill of {grouped(int(length))}"
    return "decode, empty cache" if length == "0" else f"decode after {grouped(int(length))}"


def rate_row(name, work, entry):
    """What the table of a model says of one work; last, how fast llama.cpp is with the same cache."""
    fader, peer, bar = middle(entry, "fader"), middle(entry, "peer"), bar_of(name, work)
    ratio = fader / peer if peer else None
    share = f"{100 * middle(entry, 'share'):.0f} % of {statistics.mode(entry['by'])}"
    digits = 0 if fader >= 100 else 1
    return [title_of(work), grouped(fader, digits), grouped(peer, 1) if peer else "-",
            f"{ratio:.2f}" if ratio else "-", f"{bar:g}" if bar else "-",
            verdict(ratio >= bar) if ratio and bar else "-", share] + \
        ([grouped(middle(entry, "own"), 1) if "own" in entry else "-"] if work.startswith("q8_0") else [])


def table(head, rows, aligned):
    return ["| " + " | ".join(head) + " |", aligned] + ["| " + " | ".join(row) + " |" for row in rows]


def rate_tables(results):
    lines = []
    for name, *_ in MODELS:
        works = results.all.get(name, {})
        rated = [w for w in works if w == "lanes" or w.split()[0] in ("prefill", "decode")]
        narrow = [w for w in works if w.startswith("q8_0 ")]
        if not rated:
            continue
        limits = works["limits"]
        lines += ["", f"### {name.replace('.', ' ')}, {grouped(works['about']['weights_mb'])} MB", ""]
        lines += table(["tokens a second", "fader", "llama.cpp", "ratio", "bar", "", "share of the limit"],
                       [rate_row(name, w, works[w]) for w in rated], "|---|--:|--:|--:|--:|---|---|")
        if narrow:
            lines += [""]
            lines += table(["fader with its q8_0 cache", "fader", "llama.cpp, its default f16 cache", "ratio", "bar", "",
                            "share of the limit", "llama.cpp, q8_0 cache"],
                           [rate_row(name, w, works[w]) for w in narrow], "|---|--:|--:|--:|--:|---|---|--:|")
        lines += ["", f"Limits in these runs: {middle(limits, 'stream_gbps'):.1f} GB/s from memory, "
                      f"{middle(limits, 'int8_gmacs'):.0f} G int8 and {middle(limits, 'f32_gmacs'):.0f} G f32 "
                      "multiply-adds a second."]
    return lines


def other_rows(results):
    """[what, fader, llama.cpp, bar, verdict] of the bars that are no ratios."""
    works = results.all.get(FIRST, {})
    rates = {w: middle(e, "fader") for w, e in works.items() if isinstance(e, dict)}
    rows = []

    def row(what, value, peer, bar, reached):
        rows.append([what, value, peer, bar, verdict(reached)])

    if "decode 0" in works:
        share = middle(works["decode 0"], "share")
        row("decode, empty cache: share of the streaming bandwidth", f"{100 * share:.0f} %", "-", "80 %",
            share >= MIN_SHARE)
    for kind, cache in (("decode", "f16"), ("q8_0", "q8_0")):
        if f"{kind} 0" in rates and f"{kind} 4096" in rates:
            slower = rates[f"{kind} 0"] / rates[f"{kind} 4096"]
            peers = [middle(works[f"decode {depth}"], "peer") for depth in (0, 4096)]
            row(f"time of a token after 4,096, in those of one at 0: {cache} cache", f"{slower:.2f}",
                f"{peers[0] / peers[1]:.2f}" if kind == "decode" and all(peers) else "-", f"at most {MAX_SLOWER}",
                slower <= MAX_SLOWER)
    if "decode 0" in rates and "lanes" in rates:
        gain = rates["lanes"] / rates["decode 0"]
        row(f"{LANES} lanes together, in rates of one", f"{gain:.2f}", "-", "2", gain >= 2)
    for work, what, most in (("frame", "start to first frame", MAX_FRAME_MS),
                             ("start", "start to first token", MAX_START_MS)):
        if work in works:
            peer = middle(works[work], "peer")
            row(what, f"{rates[work]:.0f} ms", f"{peer:.0f} ms" if peer else "-", f"{most} ms", rates[work] <= most)
    if "memory" in works:
        peer, allowed = middle(works["memory"], "peer"), middle(works["memory"], "allowed")
        row(f"peak memory with {grouped(MEMORY_TOKENS)} tokens", f"{rates['memory']:.0f} MB",
            f"{peer:.0f} MB" if peer else "-", f"{allowed:.0f} MB", rates["memory"] <= allowed)
    for words, milliseconds in works.get("samplers", {}).items():
        worst, most = max(milliseconds), MAX_SAMPLE_MS[int(words)]
        row(f"sampling from {grouped(int(words))} tokens, worst setting", f"{worst:.3f} ms", "-", f"{most} ms",
            worst <= most)
    return rows


def processor():
    """Its name, and what the name may not say."""
    facts = {}
    with open("/proc/cpuinfo") as file:
        for line in file:
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    return f"{facts.get('model name', 'unknown')} (family {facts.get('cpu family')}, model {facts.get('model')})"


def report(results, peer):
    about = next(w["about"] for w in results.all.values() if isinstance(w, dict) and "about" in w)
    llama = f"llama-cpp-python {peer.version} with {peer.features}" if peer else "no llama.cpp"
    rounds = sorted({w["rounds"] for w in results.all.values() if isinstance(w, dict) and "rounds" in w})
    lines = [f"{processor()}; {about['threads']} threads; {results.all['date']}; fader's {about['kernels']} kernels; {llama}; "
             f"medians of {' or '.join(map(str, rounds)) or 'no'} round{'' if rounds == [1] else 's'}."]
    lines += rate_tables(results)
    others = other_rows(results)
    if others:
        lines += ["", "### Other bars (SmolLM2-135M Q4_1)", ""]
        lines += ["| | fader | llama.cpp | bar | |", "|---|--:|--:|--:|---|"]
        lines += ["| " + " | ".join(row) + " |" for row in others]
    return "\n".join(lines) + "\n"


def write_into(path, text, kernels):
    """Puts the report between its two marks in a Markdown file."""
    with open(path) as file:
        old = file.read()
    begin, end = f"<!-- make bench: {kernels} -->\n", "<!-- end -->\n"
    head, mark, rest = old.partition(begin)
    _, end_mark, tail = rest.partition(end)
    if not mark or not end_mark:
        fail(f"{path}: it has not the lines {begin.strip()} and {end.strip()}")
    with open(path, "w") as file:
        file.write(head + begin + text + end + tail)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fader", default="./fader")
    parser.add_argument("--sampling", default="tests/bench/sampling", help="the program of that name, if it was built")
    parser.add_argument("--kernels", choices=list(BUILDS), default="native",
                        help="what both use: all that this processor can do, or AVX2 only, where it could do more")
    parser.add_argument("--setup", action="store_true", help="only build llama.cpp in an environment of its own")
    parser.add_argument("--models", default=os.path.join(CACHE, "bench"), help="folder of the other models")
    parser.add_argument("--only", default="", help="names or parts of names of models, with commas between; 'start': "
                                                   "first frame, first token, memory, sampling")
    parser.add_argument("--quick", action="store_true", help="long contexts with the default model only; 12 minutes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-t", "--threads", type=int, default=2, help="of both")
    parser.add_argument("--results", help="where figures are kept (bench-results-KERNELS.json)")
    parser.add_argument("--fresh", action="store_true", help="forget those that are there")
    parser.add_argument("--write", metavar="FILE", help="put the tables into this Markdown file")
    options = parser.parse_args()
    options.results = options.results or f"bench-results-{options.kernels}.json"
    return options


def work_for(name, quick):
    small = name.startswith("SmolLM2")
    long = name == FIRST or not quick
    return {"prefills": [512, 4096] if long else [512], "depths": [0, 2048, 4096, 7000] if long else [0],
            "n": 64 if small else 32, "q8_0": name == FIRST}


def main():
    options = parse()
    if options.setup:
        set_up(options.kernels)
        return
    wanted = [w for w in options.only.split(",") if w]
    fader = Fader(options.fader, options.threads, options.kernels)
    peer = find_peer(options.kernels, options.threads)
    results = Results(options.results, options.fresh,
                      {"peer": f"{peer.version} {peer.features}" if peer else None, "threads": options.threads,
                       "kernels": fader.environment.get("FADER_KERNELS")})
    if not wanted or "start" in wanted:
        if os.path.exists(DEFAULT_MODEL):
            compare_start(results, fader, peer, DEFAULT_MODEL, options.rounds)
        compare_sampling(results, fader, options.sampling)
    for name, *_ in MODELS:
        if wanted and not any(w in name for w in wanted):
            continue
        path = model_file(name, options.models, peer)
        if path is None:
            say(f"{name}: not there")
            continue
        compare_model(results, name, fader, peer, path, work_for(name, options.quick), options.rounds)
    if len(results.all) == 2:
        fail("nothing was measured")
    text = report(results, peer)
    sys.stdout.write(text)
    if options.write:
        write_into(options.write, text, options.kernels)


if __name__ == "__main__":
    main()
