#!/usr/bin/env python3
"""Records tests/golden/logits.txt: what the exact model says of a page of text and of a greedy answer.

  record_logits.py MODEL.gguf > logits.txt

"Exact" is the GGUF's weights dequantised (by the gguf package) and the llama graph in f64, without a cache: no
code of fader or llama.cpp. llama-cpp-python only tokenizes, and writes the greedy answer that is then
judged. Needs numpy, gguf, llama-cpp-python.

Format, one item a line:  "page N", then N lines;  "greedy PROMPT N", then N lines, the first PROMPT tokens the prompt's:
  ID LOGPROB  TOP1 LOGPROB1 ... TOP5 LOGPROB5
LOGPROB is that of the token on the *next* line (0 on the last), TOP the five likeliest after this token."""
import ctypes
import sys

import gguf
import llama_cpp
import numpy as np

PAGE = """The lighthouse at the end of the long stone pier had been dark for eleven years when Miriam bought it. The roof
leaked, the stairs were rotten, and gulls had nested in the lamp room, but the walls were four feet thick and the view
took in the whole of the bay. She moved in during the first week of April with two suitcases, a box of books, and a small
wood stove that her brother had found for her in Portland.

For the first month she did nothing but repair. She learned how to mix lime mortar, how to cut slate, and how to
listen to the wind so that she knew, an hour before the fishermen did, when a storm was coming. In the evenings she
wrote down what she had done: "Replaced 14 steps. Cleaned the gutters. Saw a seal at 6:30." She did not write about the
reasons she had come, because she had promised herself that she would not think about them until the autumn.

What is the difference between a lamp and a light? A lamp is an object; a light is what it gives. In 1822 the French
engineer Augustin Fresnel built a lens of many glass rings, which bent the light of a single flame into a beam that could be
seen more than 20 miles away. Before that, half of all ships that were lost on the coast of Brittany were lost at
night. The formula is simple: the angle of each ring is chosen so that every ray leaves the lens parallel to
the others. The work is not simple at all.

    def brightness(power, distance):
        return power / (4 * 3.14159 * distance ** 2)

By the end of summer the tower was dry. She carried the new bulb up the stairs herself, counted the steps once more, and waited
for the sun to go down."""
PROMPT = "The three most important things to know about the sea are"
ANSWER = 128


def tokenizer_and_greedy(path):
    """Returns (encode, answer): text to ids, and ids to a greedy continuation."""
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, None)
    model = llama_cpp.Llama(path, n_ctx=1024, n_threads=2, verbose=False)

    def encode(text):
        return model.tokenize(text.encode(), add_bos=False, special=False)

    def answer(ids, n):
        out = []
        for token in model.generate(ids, temp=0.0, top_k=1, repeat_penalty=1.0):
            out.append(int(token))
            if len(out) == n:
                return out

    return encode, answer


class Exact:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        field = lambda key: reader.fields["llama." + key].contents()
        self.tensors = {t.name: t for t in reader.tensors}
        self.layers, self.heads = field("block_count"), field("attention.head_count")
        self.kv_heads, self.width = field("attention.head_count_kv"), field("embedding_length")
        self.eps, self.base = field("attention.layer_norm_rms_epsilon"), field("rope.freq_base")
        self.dim = self.width // self.heads

    def weight(self, name):
        t = self.tensors[name + ".weight"]
        values = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64)
        return values.reshape(tuple(int(n) for n in t.shape)[::-1])

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + self.eps) * self.weight(name)

    def rotate(self, x):
        """Neighbouring pairs of [tokens, heads, dim] turn as complex numbers."""
        speed = self.base ** (-np.arange(0, self.dim, 2) / self.dim)
        turn = np.exp(1j * np.outer(np.arange(len(x)), speed))[:, None, :]
        pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
        return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)

    def attention(self, h, block):
        n = len(h)
        q = self.rotate((h @ self.weight(block + "attn_q").T).reshape(n, self.heads, self.dim))
        k = self.rotate((h @ self.weight(block + "attn_k").T).reshape(n, self.kv_heads, self.dim))
        v = (h @ self.weight(block + "attn_v").T).reshape(n, self.kv_heads, self.dim)
        out = np.empty_like(q)
        hidden = np.triu(np.full((n, n), -np.inf), 1)
        for head in range(self.heads):
            source = head * self.kv_heads // self.heads
            score = q[:, head] @ k[:, source].T / np.sqrt(self.dim) + hidden
            share = np.exp(score - score.max(axis=1, keepdims=True))
            out[:, head] = share / share.sum(axis=1, keepdims=True) @ v[:, source]
        return out.reshape(n, -1) @ self.weight(block + "attn_output").T

    def logprobs(self, ids):
        embedding = self.weight("token_embd")
        x = embedding[ids]
        for i in range(self.layers):
            block = f"blk.{i}."
            x = x + self.attention(self.norm(x, block + "attn_norm"), block)
            h = self.norm(x, block + "ffn_norm")
            gate = h @ self.weight(block + "ffn_gate").T
            h = gate / (1 + np.exp(-gate)) * (h @ self.weight(block + "ffn_up").T)
            x = x + h @ self.weight(block + "ffn_down").T
        logits = self.norm(x, "output_norm") @ embedding.T
        logits -= logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def write(ids, logprobs):
    for i, row in enumerate(logprobs):
        after = row[ids[i + 1]] if i + 1 < len(ids) else 0
        top = np.argsort(-row, kind="stable")[:5]
        print(ids[i], f"{after:.5f}", " ", " ".join(f"{t} {row[t]:.5f}" for t in top))


def main():
    encode, answer = tokenizer_and_greedy(sys.argv[1])
    exact = Exact(sys.argv[1])
    page = encode(PAGE)
    print("page", len(page))
    write(page, exact.logprobs(page))
    prompt = encode(PROMPT)
    whole = prompt + answer(prompt, ANSWER)
    print("greedy", len(prompt), len(whole))
    write(whole, exact.logprobs(whole))


main()
