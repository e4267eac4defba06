"""Programs on the core in hardware: the commands ``core``, ``assemble`` and ``disassemble``."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.files import open_whole, output_path
from vitruvian.common.progress import Progress
from vitruvian.common.validate import nearest
from vitruvian.wings.ascend.cce import add_cce_options, cce_program
from vitruvian.wings.ascend.riscv import run_on_riscv

if TYPE_CHECKING:
    from rich.console import Console

    from vitruvian.sim.davinci import Report

_ASSEMBLE = """Translate a kernel in CCE C, or the text of `vitruvian disassemble`, to machine code
for one core: a folder with the words (program.bin), global memory at the start (memory.bin), and
the tensors and lines of the kernel (program.json)."""

_DISASSEMBLE = """Print machine code as text, one instruction in a line with the number of its first
word; `vitruvian assemble` reads the text again."""


_CORE = """Write the chip file of a core in hardware. Its times follow from the parameters of the
core, so that `vitruvian kernel --chip FILE` predicts the cycles of the RTL."""


def register(name: str, commands: Any) -> None:
    """Add the command ``core``, ``assemble`` or ``disassemble`` to the parser."""
    {
        "core": _register_core,
        "assemble": _register_assemble,
        "disassemble": _register_disassemble,
    }[name](commands)


def _register_core(commands: Any) -> None:
    parser = commands.add_parser(
        "core",
        description=_CORE,
        epilog="Example: vitruvian core describe tiny --out tiny.toml",
    )
    parser.add_argument(
        "action", choices=("describe",), metavar="ACTION", help="Describe a core as a chip."
    )
    parser.add_argument(
        "core",
        type=core_name,
        metavar="CORE",
        help="Describe this core: tiny, micro, plain, mixed, fp8, semiring, small or davinci.",
    )
    parser.add_argument(
        "--out",
        type=output_path(".toml"),
        metavar="FILE",
        help="Write the chip file to this file (.toml; default: standard output).",
    )
    parser.add_argument(
        "--memory-latency",
        type=at_least(1, 1000),
        default=1,
        metavar="N",
        help="Read global memory in N cycles, 1 to 1000 (default: %(default)s, block RAM).",
    )
    parser.add_argument(
        "--clock-mhz",
        type=at_least(1, 10_000),
        default=50,
        metavar="MHZ",
        help="Give times at this clock, 1 to 10000 (default: %(default)s); cycles do not depend "
        "on it.",
    )
    add_json(parser, "the sizes and cycles")
    parser.set_defaults(run=_describe)


def _register_assemble(commands: Any) -> None:
    parser = commands.add_parser(
        "assemble",
        description=_ASSEMBLE,
        epilog="Example: vitruvian assemble sim/kernels/text/scale_add.cce --core tiny --out added"
        " \\\n  --arg a=normal:4096 --arg b=normal:4096 --arg y=zeros:4096 --arg scale=2 "
        "--arg tiles=2",
    )
    add_cce_options(parser)
    parser.add_argument(
        "--core",
        type=core_name,
        metavar="CORE",
        help="Refuse what this core lacks (tiny, micro, plain, mixed, fp8, semiring, small or "
        "davinci; default: encode every instruction).",
    )
    parser.add_argument(
        "--out",
        type=output_path(folder=True),
        required=True,
        metavar="FOLDER",
        help="Write the files into this folder.",
    )
    add_json(parser, "the numbers of words, bytes and tensors")
    parser.set_defaults(run=_assemble)


def _register_disassemble(commands: Any) -> None:
    parser = commands.add_parser(
        "disassemble",
        description=_DISASSEMBLE,
        epilog="Example: vitruvian disassemble added",
    )
    parser.add_argument(
        "folder", metavar="FOLDER", help="Read the program of this folder of vitruvian assemble."
    )
    parser.add_argument(
        "--out",
        type=output_path(".s"),
        metavar="FILE",
        help="Write the text to this file (.s), without the numbers (default: standard output).",
    )
    add_json(parser, "the instructions")
    parser.set_defaults(run=_disassemble)


def core_name(text: str) -> str:
    """Return the name of a core, the type of the option ``--core``.

    Raises
    ------
    ArgumentTypeError
        If there is no such core.
    """
    from vitruvian.sim.rtl.core import core_names

    names = core_names()
    if text not in names:
        message = f"must be one of {', '.join(names)}, not {text!r}{nearest(text, names)}"
        raise argparse.ArgumentTypeError(message)
    return text


def add_core(group: Any) -> None:
    """Add the option ``--core`` to a parser or an argument group."""
    group.add_argument(
        "--core",
        type=core_name,
        metavar="CORE",
        help="Run the kernel on this core in hardware too, compiled from its RTL, and compare all "
        "bytes; the simulator then computes products as its tile does (tiny, plain or small; "
        "default: the simulator alone).",
    )


def core_product_of(options: argparse.Namespace) -> Any:
    """Return the product of the tile of the core that ``--core`` names."""
    from vitruvian.sim.davinci.machine_code.core import core_product

    if options.cube != "golden":
        raise UserError(f"--core must come without --cube, not with --cube {options.cube}")
    return core_product(options.core)


def on_core(
    options: argparse.Namespace, program: Any, report: "Report", console: "Console"
) -> dict[str, Any]:
    """Run a program on the core that ``--core`` names; print and return what came of it.

    Raises
    ------
    UserError
        If the core lacks something that the program needs, or stops with a fault.
    """
    from vitruvian.sim.davinci import Deadlock
    from vitruvian.sim.davinci.machine_code.core import predicted_cycles, run_on_core
    from vitruvian.sim.rtl import StreamError
    from vitruvian.sim.rtl.core import CoreFault

    riscv = getattr(options, "feed", "stream") == "riscv"
    try:
        with Progress(
            f"running on the core {options.core}", lines=False, counts=False, after_s=2.0
        ):
            predicted = None if riscv else predicted_cycles(program, options.core)
            done = run_on_riscv(options, program) if riscv else run_on_core(program, options.core)
    except (ValueError, CoreFault, Deadlock) as error:
        raise UserError(str(error)) from None
    except StreamError as error:
        raise UserError(f"the program has not ended on core {options.core}: {error}") from None
    wrong = done.differing(report.outputs)
    busy = ", ".join(f"{unit} {cycles:,}" for unit, cycles in done.run.busy.items() if cycles)
    count = sum(array.nbytes for array in done.outputs.values())
    code = "the RISC-V's image" if riscv else "machine code"
    known = "" if predicted is None else f", {predicted:,} predicted"
    console.print(
        f"core {options.core}: {done.run.cycles:,} cycles{known} ({busy}); "
        f"{done.run.words:,} words of "
        f"{code}; {count:,} bytes compared with the simulator: {sum(wrong.values()):,} differ",
        markup=False,
        soft_wrap=True,
    )
    figures: dict[str, Any] = {"feed": "riscv"} if riscv else {}
    if predicted is not None:
        figures["predicted"] = predicted
    figures |= {"cycles": done.run.cycles, "busy": done.run.busy, "words": done.run.words}
    return {"name": options.core, **figures, "bytes": count, "differ": sum(wrong.values())}


def _describe(options: argparse.Namespace) -> int:
    from vitruvian.sim.davinci.machine_code.chip import core_chip_text
    from vitruvian.sim.rtl.core import core_facts

    text = core_chip_text(
        options.core, memory_latency=options.memory_latency, clock_mhz=options.clock_mhz
    )
    if options.json:
        write_json(options.json, {"name": options.core, **core_facts(options.core)})
    if options.out:
        with open_whole(options.out) as file:
            file.write(text.encode())
    elif options.json != "-":
        print(text, end="")
    return 0


def _assemble(options: argparse.Namespace) -> int:
    import numpy as np

    from vitruvian.sim.davinci.machine_code.core import image_of
    from vitruvian.sim.davinci.machine_code.image import ProgramImage
    from vitruvian.sim.davinci.machine_code.text import words_of

    try:
        if options.file.endswith(".s"):
            words, texts = words_of(Path(options.file).read_text())
            nothing = np.zeros(0, np.uint8)
            image = ProgramImage(np.array(words, np.uint64), nothing, texts=texts.texts)
        else:
            program, _ = cce_program(options)
            image = image_of(program, options.core)
    except ValueError as error:
        raise UserError(str(error)) from None
    image.write(Path(options.out))
    counts = {
        "words": len(image.words),
        "memory_bytes": len(image.memory),
        "tensors": len(image.tensors),
    }
    if options.json:
        write_json(options.json, counts)
    print(
        f"{options.out}: {counts['words']:,} words, {counts['memory_bytes']:,} bytes of memory, "
        f"{counts['tensors']} tensors",
        file=sys.stderr if options.json == "-" else sys.stdout,
    )
    return 0


def _disassemble(options: argparse.Namespace) -> int:
    from vitruvian.sim.davinci.machine_code.decode import split
    from vitruvian.sim.davinci.machine_code.image import ProgramImage
    from vitruvian.sim.davinci.machine_code.text import line

    try:
        image = ProgramImage.read(Path(options.folder))
        found = [
            (at, line(encoding, words, image.texts))
            for at, encoding, words in split(image.words.tolist())
        ]
    except ValueError as error:
        raise UserError(str(error)) from None
    if options.json:
        write_json(options.json, [{"word": at, "text": text} for at, text in found])
    if options.out:
        with open_whole(options.out) as file:
            file.write("".join(f"{text}\n" for _, text in found).encode())
    elif options.json != "-":
        for at, text in found:
            print(f"{at:6}  {text}")
    return 0
