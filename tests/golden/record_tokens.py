#!/usr/bin/env python3
"""Records tests/golden/tokens.json: what llama.cpp makes of a few hundred texts.

usage: record_tokens.py MODEL.gguf > tokens.json      (needs llama-cpp-python and gguf from PyPI)

Every text is tokenized with the vocabulary of MODEL under each pre-tokenizer (a copy of the file's
tokenizer with another tokenizer.ggml.pre), and once more with special tokens parsed ("special").
"""
import ast
import ctypes
import json
import os
import random
import re
import sys
import tempfile

import gguf
import llama_cpp as L

PRES = ["smollm", "gpt-2", "llama-bpe", "qwen2", "default"]

WRITTEN = r"""
Hello, world!
The quick brown fox jumps over the lazy dog.
I'm you're he's we've they'd she'll it'S I'M YOU'RE HE'S WE'VE THEY'D SHE'LL don't DON'T o'clock 's 't 're've
rock 'n' roll, ''quoted'' 'single' "double" `back` ‘curly’ “curly” it’s I’LL
1 12 123 1234 12345 123456 1,234,567.89 -3.14e-10 0x1F 1/2 ½ Ⅷ ٣٤٥ १२३ 万二千 ²³ 10:30am 2024-11-30
a1b2c3 x86_64 utf8 H2O 3rd 42nd v1.2.3-rc4
$100 €50 £20 ¥1000 50% #tag @user user@example.com a+b=c a_b-c/d\\e|f~g^h&i*j
https://example.com/path/to/page?query=1&other=two#fragment
if (x == 0) { return "zero"; } else { for (int i = 0; i < n; i++) sum += a[i]; }
def f(x, *args, **kw): return lambda y: x ** y  # comment
SELECT * FROM t WHERE a <> 'b' AND c >= 10;
<div class="a b">text &amp; more</div>
你好，世界！今天天气很好，我们去公园散步吧。
人工智能（AI）正在改变世界，2024年尤其如此。
這是繁體中文，「引號」與『書名』。
こんにちは、世界。カタカナとひらがな、漢字も混ざる。ｶﾀｶﾅ
안녕하세요 세계! 한국어 문장입니다. ㄱㄴㄷ
مرحبا بالعالم، كيف حالك؟ اللغة العربية ٢٠٢٤
שלום עולם, מה שלומך?
नमस्ते दुनिया, आप कैसे हैं? क्षत्रिय
สวัสดีชาวโลก ภาษาไทยไม่มีเว้นวรรค
Привет, мир! Как дела? Ёжик
Γειά σου Κόσμε, τι κάνεις;
Xin chào thế giới, tiếng Việt có dấu
Zażółć gęślą jaźń, Příliš žluťoučký kůň, Ünïcödé ßtraße, naïve café, Ærøskøbing
👋🌍 emoji 😀😃😄 👩‍👩‍👧‍👦 👍🏽 🇩🇪🇯🇵 ❤️ ☺︎ 🏳️‍🌈 1️⃣
e\u0301 a\u0308o\u0302 Z\u0351\u0360a\u0300\u0301\u0302lgo \u0301alone
∑∫√∞≠≤≥ ∀x∈ℝ: ⌈x⌉ = −⌊−x⌋ → ⇒ α β γ
math: $\\frac{1}{2}$ and \\(x^2\\)
tab\tseparated\tvalues\t\tdouble
line one\nline two\n\nline four\n\n\n\nend
dos\r\nline\r\nends\r\n\r\nx
old\rmac\r\rends
 leading space
trailing space 
  two leading
two trailing  
a  b   c    d     e
    indented by four\n        and eight\n\tand a tab\n \t mixed
\n
\n\n
 \n
\n 
 \n \n 
\t\n\t
\r\n
 
  
   
\u00a0nbsp\u00a0\u00a0two \u2003em\u2003\u3000ideographic\u3000 \u200bzero\u200bwidth\u202fnarrow
\u1680ogham \u180emongolian\u180e \u2028line\u2029para \u0085next \u000bvt\u000c ff
\u0001\u0002\u0007\u001b[31mred\u001b[0m\u007f
\ufeffbom \ufffd replacement \ufdd0 non
x\u0000y
word\u00adsoft\u00adhyphen
........ ----- ===== !!!??? ...and (((nested))) [[x]] {{y}}
!a ?b .c ,d (e [f "g -h _i
foo. bar! baz? qux; a: b, c
CamelCaseWord snake_case_word SCREAMING_CASE kebab-case-word
supercalifragilisticexpialidocious pneumonoultramicroscopicsilicovolcanoconiosis
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n
<|endoftext|>
<|endoftext|><|endoftext|>  <|im_end|>
a<|im_end|>b <|im_end|> c<|im_start|>
<|im_start|> <|im_startx|> <|im_start <|im_end|
<repo_name>x<file_sep>y<reponame> <unknown> </s> <s> [INST]
<|im_<|im_end|>end|>
the rain in Spain stays mainly in the plain
The capital of France is Paris. La capitale de la France est Paris.
O\u2019Neill\u2019s 5\u20136 \u2014 dash\u2026
\U0001d54f\U0001d4d0 fancy \U00020000\U0002a6d6 rare han \U0001f9d1\u200d\U0001f680
ǅ ﬁ ﬂ ĳ İi ıI ſs 'ſ
no\u0308 spaces\u0020\u0308mark \u0903\u093e
٠١٢ ۱۲۳ ०१ ௧௨ ๑๒ ⓪①② ㊀㊁ 〇〡〢
"""

CLASSES = [
    "abcdefghij", "ABCXYZ", "0123456789", " ", "  ", "\n", "\r\n", "\t", "'", "'s", "'LL", ".,;:!?", "-_/\\",
    "<|>", "éüñç", "你好世界", "かな", "한글", "مرحبا", "नमस्ते", "\u0301\u0308", "👍🏽", "\u200d", "€$+=^~",
    "½²", "\u00a0", "\u3000", "ʼ’", "ß", "ЖЁ",
]


def texts():
    out = [unescape(t) for t in WRITTEN.strip("\n").split("\n")]
    rng = random.Random(20261130)
    for _ in range(220):
        parts = []
        for _ in range(rng.randint(1, 24)):
            c = rng.choice(CLASSES)
            parts.append(c if len(c) < 3 or rng.random() < 0.1 else rng.choice(c) * rng.choice([1, 1, 1, 2, 3]))
        out.append("".join(parts))
    return [t for t in out if "\0" not in t]


def unescape(text):
    """Python's escapes for characters that an editor would not show."""
    return re.sub(r"\\(?:n|r|t|\\|u[0-9a-f]{4}|U[0-9a-f]{8})", lambda m: ast.literal_eval(f"'{m[0]}'"), text)


def variant(model, pre, path):
    """A file with nothing but the tokenizer of `model`, whose pre-tokenizer is called `pre`."""
    reader = gguf.GGUFReader(model)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_vocab_size(len(reader.fields["tokenizer.ggml.tokens"].contents()))
    for key, field in reader.fields.items():
        if not key.startswith("tokenizer.") or key == "tokenizer.ggml.pre":
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    writer.add_string("tokenizer.ggml.pre", pre)
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(32)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Vocabulary:
    def __init__(self, path):
        params = L.llama_model_default_params()
        params.vocab_only = True
        self.model = L.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            sys.exit(f"cannot load {path}")
        self.vocab = L.llama_model_get_vocab(self.model)

    def ids(self, text, special=False):
        data = text.encode()
        room = (L.llama_token * (len(data) + 16))()
        n = L.llama_tokenize(self.vocab, data, len(data), room, len(room), False, special)
        assert n >= 0
        return list(room[:n])


@L.llama_log_callback
def quiet(level, text, data):
    pass


def main():
    model = sys.argv[1]
    L.llama_log_set(quiet, ctypes.c_void_p(0))
    L.llama_backend_init()
    cases = [{"text": t} for t in dict.fromkeys(texts())]
    with tempfile.TemporaryDirectory() as folder:
        for pre in PRES:
            path = os.path.join(folder, "vocabulary.gguf")
            variant(model, pre, path)
            vocabulary = Vocabulary(path)
            for case in cases:
                case[pre] = vocabulary.ids(case["text"])
    vocabulary = Vocabulary(model)
    for case in cases:
        assert case["smollm"] == vocabulary.ids(case["text"])
        special = vocabulary.ids(case["text"], True)
        if special != case["smollm"]:
            case["special"] = special
    eog = [i for i in range(L.llama_vocab_n_tokens(vocabulary.vocab)) if L.llama_vocab_is_eog(vocabulary.vocab, i)]
    print('{"recorded_by": "llama.cpp through llama-cpp-python ' + L.__version__ + '",')
    print('"eog": ' + json.dumps(eog) + ',')
    print('"cases": [')
    print(",\n".join(json.dumps(c, ensure_ascii=True, separators=(",", ":")) for c in cases))
    print("]}")


main()
