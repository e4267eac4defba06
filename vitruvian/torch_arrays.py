"""PyTorch's tensors as NumPy's arrays, and back."""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import numpy as np
import torch
from torch import Tensor

#: Integers of the same width, in which tensors pass to and from NumPy.
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def array(x: Tensor) -> np.ndarray:
    """Return values of FP32 and FP64, and codes of other types."""
    x = x.detach().contiguous()
    if x.dtype in (torch.float32, torch.float64):
        return x.numpy()
    size = x.element_size()
    return x.view(_INTEGERS[size]).numpy().view(f"u{size}")


def tensor(d: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Return a tensor of a type from its values or codes."""
    integers = torch.from_numpy(np.ascontiguousarray(d).view(f"i{d.itemsize}"))
    return integers.view(dtype).reshape(d.shape)
