"""Instructions of PTX, by the names of their formats there."""

from vitruvian.flows.probes.instruction import ProbedInstruction

#: Name in PTX -> name in the files, and bits in a register.
_FORMATS = {
    "f16": ("fp16", 16),
    "bf16": ("bf16", 16),
    "tf32": ("tf32", 32),
    "e4m3": ("fp8e4m3", 8),
    "e5m2": ("fp8e5m2", 8),
    "e2m3": ("fp6e2m3", 8),
    "e3m2": ("fp6e3m2", 8),
    "e2m1": ("fp4e2m1", 8),
    "s8": ("int8", 8),
    "u8": ("uint8", 8),
    "f64": ("fp64", 64),
    "f32": ("fp32", 32),
    "s32": ("int32", 32),
}
FP8 = ("e4m3", "e5m2")
#: The formats of 8, 6 and 4 bits of Blackwell.
SMALL = (*FP8, "e2m3", "e3m2", "e2m1")


def instruction(
    kind: str, shape: str, a: str, b: str, out: str, device: int, text: str, **more: object
) -> ProbedInstruction:
    """Return an instruction.

    Parameters
    ----------
    kind : str
        How operands are arranged; the first part of the name.
    shape : str
        For example "m16n8k16"; the number after k is that of the terms.
    a, b, out : str
        Formats by their names in PTX.
    device, text, **more
        As in ``ProbedInstruction``.
    """
    # A shape such as m16n8k32 ends with K.
    terms = int(shape.rsplit("k", 1)[1])
    formats = a if a == b else f"{a}_{b}"
    tail = f"_{more['scale']}_{more['block']}" if "scale" in more else ""
    return ProbedInstruction(
        f"{kind}_{shape}_{formats}_{out}{tail}",
        _FORMATS[a][0],
        _FORMATS[b][0],
        _FORMATS[out][0],
        terms,
        kind=kind,
        text=text,
        device=device,
        sparse="sp" in kind.split("_"),
        **more,  # pyright: ignore
    )


def format_bits(name: str) -> int:
    """Return the bits that an element of a format, by its name in the files, has in a register."""
    return next(bits for each, bits in _FORMATS.values() if each == name)
