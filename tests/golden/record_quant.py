#!/usr/bin/env python3
"""Records tests/golden/quant.json: two blocks (at least 64 elements) of every supported type with
their values, and the block sizes of every type, as the gguf package (PyPI) has them. Bytes and values
(little-endian f32) are written in hexadecimal.

usage: record_quant.py > quant.json
"""
import json

import gguf
import numpy as np

# Where a block's halves are; all other bytes may be anything.
HALVES = {"F16": None, "BF16": None, "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2],
          "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
          "IQ4_XS": [0]}


def blocks(rng, quant, halves):
    elements, size = gguf.GGML_QUANT_SIZES[quant]
    n = max(2, 64 // elements)
    if halves is None:
        return gguf.quants.quantize((rng.standard_normal((1, n)) * 3).astype(np.float32), quant)
    data = rng.integers(0, 256, (n, size), dtype=np.uint8)
    for at in halves:
        data[:, at:at + 2] = rng.standard_normal((n, 1)).astype(np.float16).view(np.uint8)
    return data.reshape(1, -1)


def main():
    rng = np.random.default_rng(7)
    sizes = [{"id": int(t), "name": t.name, "elements": n, "bytes": b}
             for t, (n, b) in gguf.GGML_QUANT_SIZES.items() if t.name != "Q8_1"]  # ggml's own is 36, not 40
    rows = []
    for name, halves in HALVES.items():
        quant = gguf.GGMLQuantizationType[name]
        data = np.ascontiguousarray(blocks(rng, quant, halves)).view(np.uint8)
        values = gguf.quants.dequantize(data, quant).astype(np.float32).ravel()
        rows.append({"id": int(quant), "bytes": data.tobytes().hex(), "values": values.tobytes().hex()})
    print(json.dumps({"sizes": sizes, "rows": rows}, indent=0))


main()
