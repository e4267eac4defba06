"""Speed of an encoder layer of PyTorch whose products are those of a GPU, to the bit.

    python benchmarks/torch_layer.py [--width 512] [--tokens 512]

The layer has eight heads and four times its width inside, in BF16, without dropout; its attention
is unfused. Every product is computed by a plan of ``vitruvian.torch.library`` with ``assume=True``.
Needs the extra ``vitruvian[torch]``.
"""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import argparse
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from vitruvian.torch import library


def main() -> None:
    """Print multiply-accumulates per second, forward, with our products and PyTorch's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    width, tokens = options.width, options.tokens
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, batch_first=True)
    layer = layer.bfloat16().train()  # in eval mode, PyTorch has one operator for all of it
    x = torch.randn(1, tokens, width).bfloat16()
    macs = tokens * width * width * (4 + 8) + 2 * tokens * tokens * width
    context = library(assume=True)
    best = {"ours": 1e9, "PyTorch": 1e9}
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        for _ in range(options.repeats + 1):  # the first also finds plans and compiles kernels
            for name in best:
                start = time.perf_counter()
                if name == "ours":
                    with context:
                        layer(x)
                else:
                    layer(x)
                best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(f"{name}: {macs / seconds / 1e9:.2f} GMAC/s, {1e3 * seconds:.0f} ms")
    print(f"{len(context.calls)} calls, {macs / 1e9:.2f} GMAC")


if __name__ == "__main__":
    main()
