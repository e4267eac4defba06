"""Write the register map of a unit as a C header, as Python constants and as a table.

The C header has two groups of macros. Those of the map begin with ``VITRUVIAN_`` and are the same
for every unit, so a program may include several headers. Those of the unit begin with the name of
its module.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vitruvian.hdl.bus.core import KINDS, BusCore
from vitruvian.hdl.bus.lite import LiteUnit
from vitruvian.hdl.bus.registers import REGISTERS, Register, constants
from vitruvian.hdl.bus.serial import SerialUnit
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.elaborate import only_described


@dataclass(frozen=True)
class Constant:
    """A name, its value, and what it means."""

    name: str
    value: int
    text: str

    @property
    def digits(self) -> str:
        """The value, in hexadecimal digits unless it is short."""
        # Counts are decimal; masks and addresses are easier to read in hexadecimal.
        return str(self.value) if self.value < 32 else f"0x{self.value:x}"


def map_constants() -> Iterator[Constant]:
    """Yield the offsets of all registers, and the masks and shifts of their fields."""
    for register in REGISTERS:
        name = register.name.upper()
        yield Constant(
            f"{name}_OFFSET", register.offset, f"{register.access.value}: {register.text}"
        )
        for field in register.fields:
            member = f"{name}_{field.name.upper()}"
            yield Constant(f"{member}_MASK", field.mask, field.text)
            yield Constant(f"{member}_SHIFT", field.low, "")


def unit_constants(core: BusCore) -> Iterator[Constant]:
    """Yield the values of the registers that describe a unit, its sizes and its codes."""
    for name, value in constants(core).items():
        yield Constant(f"{name.upper()}_VALUE", value, f"value of the register {name}")
    config = core.config
    for name, value, text in (
        ("m", config.m, "rows of A and D"),
        ("n", config.n, "columns of B and D"),
        ("k", config.k, "lanes of an element"),
        ("slots", core.slot_count, "C fractals that the unit holds"),
        ("kind", KINDS.index(core.kind), f"kind of the unit: {core.kind}"),
    ):
        yield Constant(name.upper(), value, text)
    # A driver writes whole words of 32 bits.
    for words, bits in (
        ("A", core.a_bits),
        ("B", core.b_bits),
        ("INDEX", core.index_bits),
        ("D", core.d_bits),
    ):
        yield Constant(f"{words}_WORDS", -(-bits // 32), f"words of {words} in a beat")
    for code, name in enumerate(core.precisions):
        yield Constant(f"PRECISION_{name.upper()}", code, "")
    for code, op in enumerate(core.operations):
        yield Constant(f"OPERATION_{op.mnemonic.upper()}", code, "")
    for code, name in enumerate(("ZERO", "FROM_C", "ACCUMULATE")):
        yield Constant(f"START_{name}", code, "")


def c_header(core: BusCore, *, module: str, command: str) -> str:
    """Return a C header.

    Parameters
    ----------
    core : BusCore
        The unit.
    module : str
        Name of the Verilog module.
    command : str
        The command line that writes the files, for a comment.
    """
    guard = f"{module.upper()}_REGISTERS_H"
    lines = [f"/* Registers of {module}. Made by: {command} */", f"#ifndef {guard}"]
    lines += [f"#define {guard}", ""]
    for prefix, group in (("VITRUVIAN", map_constants()), (module.upper(), unit_constants(core))):
        for constant in group:
            # C89 has no comments to the end of a line.
            remark = f" /* {constant.text} */" if constant.text else ""
            lines.append(f"#define {prefix}_{constant.name} {constant.digits}u{remark}")
        lines.append("")
    return "\n".join([*lines, f"#endif /* {guard} */", ""])


def python_module(core: BusCore, *, module: str, command: str) -> str:
    """Return a Python module with the same constants; the parameters are those of ``c_header``."""
    lines = [f'"""Registers of {module}. Made by: {command}"""', ""]
    for group in (map_constants(), unit_constants(core)):
        for constant in group:
            remark = f"  # {constant.text}" if constant.text else ""
            lines.append(f"{constant.name} = {constant.digits}{remark}")
        lines.append("")
    return "\n".join(lines)


def register_files(variant: Variant) -> dict[str, str]:
    """Return the names and texts of the files beside the Verilog of a unit with registers."""
    # The registers follow from the parameters alone; nothing is elaborated.
    component = only_described(variant.build())
    if not isinstance(component, LiteUnit | SerialUnit):
        return {}
    core = component.core
    named = {"module": variant.module, "command": f"vitruvian verilog {variant.arguments}"}
    return {
        f"{variant.module}_registers.h": c_header(core, **named),
        f"{variant.module}_registers.py": python_module(core, **named),
    }


def table(registers: Sequence[Register] = REGISTERS) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table of all registers."""
    rows = []
    for register in registers:
        kinds = "" if register.kinds == KINDS else f" ({', '.join(register.kinds)})"
        # Sizes and codes differ from unit to unit.
        after = "by unit" if register.reset is None else f"0x{register.reset:x}"
        rows.append(
            [
                f"`0x{register.offset:02x}`",
                f"`{register.name}`",
                "",
                register.access.value,
                after,
                f"{register.text}{kinds}",
            ]
        )
        for field in register.fields:
            high = field.low + field.width - 1
            bits = str(high) if field.width == 1 else f"{high}:{field.low}"
            rows.append(["", f"`.{field.name}`", bits, "", "", field.text])
    return ["offset", "register", "bits", "access", "after reset", "meaning"], rows
