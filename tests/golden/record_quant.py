#!/usr/bin/env python3
"""Records tests/golden/quant.json: blocks of every supported type with their values, and the block
sizes of every type, as the gguf package (PyPI) has them.

usage: record_quant.py > quant.json
"""
import json

import gguf
import numpy as np

SUPPORTED = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]


def main():
    rng = np.random.default_rng(7)
    sizes = [{"id": int(t), "name": t.name, "elements": n, "bytes": b}
             for t, (n, b) in gguf.GGML_QUANT_SIZES.items() if t.name != "Q8_1"]  # ggml's own is 36, not 40
    rows = []
    for name in SUPPORTED:
        quant = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[quant]
        values = (rng.standard_normal((1, 64)) * 3).astype(np.float32)
        data = np.ascontiguousarray(gguf.quants.quantize(values, quant)).view(np.uint8)
        assert data.size == 64 // elements * size
        exact = gguf.quants.dequantize(data, quant).astype(np.float64).ravel()
        rows.append({"id": int(quant), "bytes": data.tobytes().hex(), "values": exact.tolist()})
    print(json.dumps({"sizes": sizes, "rows": rows}, indent=0))


main()
