"""Batch checks of Im2Col and Col2Im, which compare compiled RTL under stalls with golden."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.scu.patches import ROWS
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.scu import conversion_config
from vitruvian.hdl.scu import Col2Im, ConversionConfig, Im2Col
from vitruvian.sim.rtl import CompiledModel, StreamResult, compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .traffic import ConversionInstruction, Walk, additions, bit_patterns, loads

#: Rows of fractals are wide, and an instruction has at least 16 of them.
SHARE = 1 / 16
#: Approximate rows of an instruction of ``traffic``.
_ROWS_EACH = 50


def words(rows: np.ndarray, config: ConversionConfig) -> np.ndarray:
    """Return C0 rows (N, C0) of any dtype as the payload of a stream.

    Parameters
    ----------
    rows : (N, C0) ndarray
        Rows of ``config.c0_bytes`` bytes. Zeros fill the last word of a row.

    Returns
    -------
    (N / config.rows, config.rows, …) ndarray of uint64
    """
    data = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    raw = np.zeros((len(rows), ceil_div(config.c0_bytes, 8)), np.uint64)
    raw.view(np.uint8)[:, : config.c0_bytes] = data
    # The driver takes fields of up to 64 bits as numbers, and wider ones as rows of words.
    return raw.reshape(-1, config.rows, *raw.shape[1:][: config.c0_bytes > 8])


def elements(payload: np.ndarray, config: ConversionConfig, dtype: Any) -> np.ndarray:
    """Return the payload of a stream of C0 rows as elements, (N, C0); the inverse of ``words``."""
    words = np.ascontiguousarray(payload, np.uint64).reshape(len(payload) * config.rows, -1)
    return np.ascontiguousarray(words.view(np.uint8)[:, : config.c0_bytes]).view(dtype)


def _commands(instructions: Sequence[ConversionInstruction]) -> dict[str, np.ndarray]:
    commands = [instruction.command() for instruction in instructions]
    return {name: np.array([c[name] for c in commands]) for name in commands[0]}


def _operands(
    instructions: Sequence[ConversionInstruction], addresses: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the command of each row, for messages."""
    repeats = [ROWS * instruction.repeat for instruction in instructions]
    columns = {name: np.repeat(v, repeats) for name, v in _commands(instructions).items()}
    return columns | {"address": addresses}


def _checked_fetches(
    result: StreamResult,
    walks: Sequence[Walk],
    instructions: Sequence[ConversionInstruction],
    seed: int | None,
) -> Result:
    """Compare the requests of a run with the pixels that golden touches."""
    address = np.concatenate([walk.address for walk in walks])
    inside = np.concatenate([walk.inside for walk in walks])
    fetch = result.outputs["fetch"]
    # An address in the padding is undefined, so it is masked on both sides.
    got = np.stack([fetch["inside"].ravel(), fetch["address"].ravel() * fetch["inside"].ravel()])
    return compare(
        "request",
        got=got.T.astype(np.uint32),
        expected=np.stack([inside, address * inside]).T.astype(np.uint32),
        operands=_operands(instructions, address),
        seed=seed,
    )


def run_im2col(
    model: CompiledModel,
    config: ConversionConfig,
    instructions: Sequence[ConversionInstruction],
    images: Sequence[np.ndarray],
    *,
    rng: np.random.Generator | None = None,
    **options: Any,
) -> StreamResult:
    """Run Im2Col loads, each on an image (C1, H, W, C0) of 16-bit codes.

    Parameters
    ----------
    model : CompiledModel
        Model of an ``Im2Col``.
    images : sequence of ndarray
    rng : Generator, optional
        Source of the rows that the memory returns for pixels outside of the image.
    **options
        Arguments of ``CompiledModel.stream``.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    inputs = load_streams(config, instructions, images, rng)
    sent = len(inputs["rows"])
    return model.stream(inputs=inputs, outputs={"fetch": sent, "o": sent}, **options)


def load_streams(
    config: ConversionConfig,
    instructions: Sequence[ConversionInstruction],
    images: Sequence[np.ndarray],
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return the inputs of an ``Im2Col``: commands, and the rows that a memory returns for them."""
    rows = [
        _gathered(image, instruction, config, rng)
        for image, instruction in zip(images, instructions, strict=True)
    ]
    return {"i": _commands(instructions), "rows": words(np.concatenate(rows), config)}


def _gathered(
    image: np.ndarray,
    instruction: ConversionInstruction,
    config: ConversionConfig,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the rows that a memory returns for an instruction, random outside of the image."""
    walk = instruction.walk(config.address_bits)
    rows = rng.integers(0, 256, (len(walk.inside), config.c0_bytes), np.uint8).view(image.dtype)
    groups, lines, columns = (axis[walk.inside] for axis in walk.place)
    rows[walk.inside] = image[groups, lines, columns]
    return rows


def compare_loads(
    model: CompiledModel,
    config: ConversionConfig,
    instructions: Sequence[ConversionInstruction],
    *,
    seed: int,
    stall_rate: float = 0.2,
) -> Result:
    """Run Im2Col loads on random images, and compare every request and every row with golden."""
    rng = np.random.default_rng(seed)
    c0 = config.c0_bytes // 2
    images = [rng.integers(0, 1 << 16, (*i.shape, c0), np.uint16) for i in instructions]
    result = run_im2col(
        model, config, instructions, images, rng=rng, stall_rate=stall_rate, stall_seed=seed
    )
    walks = [instruction.walk(config.address_bits) for instruction in instructions]
    fetches = _checked_fetches(result, walks, instructions, seed)
    expected = [i.fractals(image) for i, image in zip(instructions, images, strict=True)]
    return fetches + compare(
        "row of a fractal",
        got=elements(result.outputs["o"], config, np.uint16),
        expected=np.concatenate(expected),
        operands=_operands(instructions, np.concatenate([w.address for w in walks])),
        seed=seed,
    )


def run_col2im(
    model: CompiledModel,
    config: ConversionConfig,
    instructions: Sequence[ConversionInstruction],
    pixels: Sequence[np.ndarray],
    fractals: Sequence[np.ndarray],
    **options: Any,
) -> StreamResult:
    """Run Col2Im instructions, given the rows of pixels and of fractals of each.

    Parameters
    ----------
    model : CompiledModel
        Model of a ``Col2Im``.
    pixels, fractals : sequence of (repeat·16, C0) ndarray
    **options
        Arguments of ``CompiledModel.stream``.
    """
    inputs = addition_streams(config, instructions, pixels, fractals)
    sent = len(inputs["rows"])
    return model.stream(inputs=inputs, outputs={"fetch": sent, "o": sent}, **options)


def addition_streams(
    config: ConversionConfig,
    instructions: Sequence[ConversionInstruction],
    pixels: Sequence[np.ndarray],
    fractals: Sequence[np.ndarray],
) -> dict[str, Any]:
    """Return the inputs of a ``Col2Im``; the arguments are those of ``run_col2im``."""
    # The unit ignores the mode, so every other command has the wrong one.
    return {
        "i": _commands(instructions) | {"mode": np.arange(len(instructions)) % 2},
        "rows": words(np.concatenate(pixels), config),
        "fractals": words(np.concatenate(fractals), config),
    }


class Additions(NamedTuple):
    """Col2Im instructions with random data and golden's sums, one item for each instruction.

    ``sums`` has the codes that golden writes, and zeros for pixels outside of the image.
    """

    instructions: list[ConversionInstruction]
    walks: list[Walk]
    pixels: list[np.ndarray]
    fractals: list[np.ndarray]
    sums: list[np.ndarray]


def draw_additions(
    config: ConversionConfig,
    dtype: Any,
    groups: Sequence[Sequence[ConversionInstruction]],
    *,
    seed: int,
) -> Additions:
    """Return the data of Col2Im instructions; the arguments are those of ``compare_additions``."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    codes, c0 = f"u{dtype.itemsize}", config.c0_bytes // dtype.itemsize
    instructions = [instruction for part in groups for instruction in part]
    walks = [instruction.walk(config.address_bits) for instruction in instructions]
    pixels, fractals, sums = [], [], []
    walk = iter(walks)
    for part in groups:
        image = bit_patterns(rng, (*part[0].shape, c0), dtype)
        for instruction in part:
            rows = bit_patterns(rng, (ROWS * instruction.repeat, c0), dtype)
            place, inside = (w := next(walk)).place, w.inside
            # The memory may return anything for a pixel outside of the image; it returns the first
            # pixel.
            clipped = tuple(np.where(inside, axis, 0) for axis in place)
            pixels.append(image[clipped])
            # The next instruction of the group reads what this one wrote.
            image = instruction.added(image, rows)
            fractals.append(rows)
            # Codes, because a NaN differs from itself.
            sums.append(np.where(inside[:, None], image[clipped].view(codes), 0))
    return Additions(instructions, walks, pixels, fractals, sums)


def compare_additions(
    model: CompiledModel,
    config: ConversionConfig,
    dtype: Any,
    groups: Sequence[Sequence[ConversionInstruction]],
    *,
    seed: int,
    stall_rate: float = 0.2,
) -> Result:
    """Run Col2Im instructions, and compare every request and every write with golden.

    Parameters
    ----------
    model : CompiledModel
        Model of a ``Col2Im``.
    dtype : numpy dtype
        float16 or float32, the elements of images and fractals, which are random bit patterns.
    groups : sequence of sequences of Instruction
        The instructions of an inner sequence share an image and follow each other.
    seed : int
        Seed of the data and of the stalls, and for messages.
    """
    codes = f"u{np.dtype(dtype).itemsize}"
    instructions, walks, pixels, fractals, sums = draw_additions(config, dtype, groups, seed=seed)
    result = run_col2im(
        model, config, instructions, pixels, fractals, stall_rate=stall_rate, stall_seed=seed
    )
    fetches = _checked_fetches(result, walks, instructions, seed)
    written, wanted = result.outputs["o"]["pixels"], result.outputs["fetch"]
    inside = written["inside"].ravel().astype(bool)
    address = written["address"].ravel()
    same = (inside == wanted["inside"].ravel()) & (address == wanted["address"].ravel())
    rows = np.where(inside[:, None], elements(result.outputs["o"]["rows"], config, codes), 0)
    return fetches + compare(
        "write",
        # A request that differs was counted above; here the write must have the same address.
        got=np.concatenate([same[:, None].astype(codes), rows], axis=1),
        expected=np.concatenate([np.ones((len(rows), 1), codes), np.concatenate(sums)], axis=1),
        operands=_operands(instructions, address)
        | {
            "pixel": np.concatenate(pixels).view(codes),
            "fractal": np.concatenate(fractals).view(codes),
        },
        seed=seed,
    )


def _run_loads(config: ConversionConfig, vectors: int, seed: int) -> Result:
    model = compile_unit(Im2Col, config=config)
    count = int(vectors * SHARE / _ROWS_EACH) + 50
    instructions = list(loads(config, count, np.random.default_rng(seed)))
    return compare_loads(model, config, instructions, seed=seed)


def _run_additions(
    config: ConversionConfig, format: str, pipeline: int, vectors: int, seed: int
) -> Result:
    model = compile_unit(Col2Im, config=config, format=format, pipeline=pipeline)
    count = int(vectors * SHARE / _ROWS_EACH) + 50
    groups = list(additions(config, count, np.random.default_rng(seed)))
    dtype = {"fp16": np.float16, "fp32": np.float32}[format]
    return compare_additions(model, config, dtype, groups, seed=seed)


def checks() -> Iterator[Check]:
    """Yield a row for every checked configuration of the units of the catalogue."""
    for name, component in (("scu-im2col", Im2Col), ("scu-col2im", Col2Im)):
        unit = UNITS[name]
        for partial_configuration in unit.checked:
            c = unit.default(partial_configuration)
            config = conversion_config(c)
            run: Callable[[int, int], Result] = partial(_run_loads, config)
            if component is Col2Im:
                run = partial(_run_additions, config, c["format"], c["pipeline"])
            label = " ".join(f"{key}={value}" for key, value in c.items() if value is not None)
            yield Check(
                unit=f"scu.{component.__name__}",
                configuration=f"{label}: random geometry, stalls",
                run=run,
                weight=6 + config.rows * (4 if component is Col2Im else 1),
            )
