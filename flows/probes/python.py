"""The program for a function or a simulator of the user's own: Python with NumPy."""

import re

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int, shortened
from vitruvian.flows.probes.instruction import ProbedInstruction
from vitruvian.golden.machines.probe import format_of

#: A name of an instruction, for messages.
EXAMPLE = "fp16_fp32_k8"
# The first format is matched as short as possible, so that an x separates the formats of A and B.
_NAME = re.compile(r"([a-z0-9]+?)(?:x([a-z0-9]+))?_([a-z0-9]+)_k([0-9]{1,4})")
_MOST_TERMS = 1024

_PROGRAM = r'''"""Run a function of yours, or a program, on the operands of the probe.

    python3 probe.py inputs.bin outputs.bin
        calls unit() below, which you fill in

    python3 probe.py inputs.bin outputs.bin ./simulator --option
        runs this program once for each instruction. It reads a line for each dot product: the
        codes of A, of B and of C in hexadecimal, and prints a line with the code of D.

Needs NumPy and nothing else.
"""

import struct
import subprocess
import sys

import numpy as np


def unit(name, a, b, c):
    """Return D = C + sum over k of A_k * B_k, as your unit computes it.

    name: the instruction, INPUT_OUTPUT_kK; a, b: (N, K) arrays of codes, c: (N,) array of codes,
    all unsigned. Return the (N,) codes of D.

    For FP16 operands and FP32 results, codes become numbers and numbers codes by
        x, y, z = a.view(np.float16), b.view(np.float16), c.view(np.float32)
        d = z + (x.astype(np.float32) * y.astype(np.float32)).sum(axis=1)
        return d.astype(np.float32).view(np.uint32)
    A shared object is called with ctypes:
        library = ctypes.CDLL("./unit.so")
        d = np.empty_like(c)
        library.dots(*(x.ctypes.data_as(ctypes.c_void_p) for x in (a, b, c, d)), len(c), a.shape[1])
        return d
    """
    sys.exit("fill in unit() in probe.py, or name a program behind outputs.bin")


def run(command, a, b, c):
    """Return what a program prints for lines of hexadecimal codes."""
    lines = "".join(
        " ".join(format(int(v), "x") for v in (*x, *y, z)) + "\n" for x, y, z in zip(a, b, c)
    )
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True)
    words = done.stdout.split()
    if done.returncode or len(words) != len(c):
        sys.exit(f"{command[0]}: exit code {done.returncode}, {len(words)} of {len(c)} results")
    return np.array([int(word, 16) for word in words], np.uint64)


def main(source, target, *command):
    with open(source, "rb") as file:
        data = bytearray(file.read())
    (count,) = struct.unpack_from("<I", data, 12)
    for number in range(count):
        place = 128 + 256 * number
        name = bytes(data[place : place + 64]).split(b"\0")[0].decode()
        rows, terms, _, *sizes = struct.unpack_from("<6I", data, place + 196)
        (offset,) = struct.unpack_from("<Q", data, place + 224)
        arrays = []
        for size, shape in zip(sizes, ((rows, terms), (rows, terms), (rows,))):
            many = int(np.prod(shape))
            part = np.frombuffer(bytes(data), f"<u{size}", many, offset).reshape(shape)
            arrays.append(part.copy())
            offset += many * size
        d = np.asarray(run(command, *arrays) if command else unit(name, *arrays))
        if d.shape != (rows,) or d.dtype.kind not in "iu":
            sys.exit(f"{name}: results must be {rows} codes, not {d.dtype} of the shape {d.shape}")
        result = d.astype(f"<u{sizes[2]}").tobytes()
        data[offset : offset + len(result)] = result
        data[place + 192] = 1
    device = (command[0] if command else "a function in Python").encode()[:63]
    data[64 : 64 + len(device)] = device
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
'''
_MAKEFILE = """\
# make, or make RUN="./simulator --option"
PYTHON = python3

outputs.bin: probe.py inputs.bin
\t$(PYTHON) probe.py inputs.bin outputs.bin $(RUN)
"""


def instructions(names: list[str]) -> list[ProbedInstruction]:
    """Return the instructions with these names, INPUT_OUTPUT_kK or AxB_OUTPUT_kK.

    Raises
    ------
    UserError
        If a name has another form or an unknown format, or if there is none.
    """
    form = f"INPUT_OUTPUT_kK, as {EXAMPLE} or fp8e4m3xfp8e5m2_fp32_k32"
    if not names:
        raise UserError(f"a target of your own must come with --instruction {form}")
    found: list[ProbedInstruction] = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            raise UserError(f"instruction must be {form}, not {shortened(name)}")
        a, b, output, terms = match[1], match[2] or match[1], match[3], int(match[4])
        check_int(f"K of {name}", terms, 1, _MOST_TERMS)
        x, y, z = (str(format_of(f, f"each format of {name}")) for f in (a, b, output))
        found.append(ProbedInstruction(name, x, y, z, terms))
    return list(dict.fromkeys(found))


def program() -> dict[str, str]:
    """Return the program and its Makefile."""
    return {"probe.py": _PROGRAM, "Makefile": _MAKEFILE}
