"""Our own 45 nm cell library, written from a table of cells and a delay model of our own.

`CELLS` says what each cell is made of; `flows.cells.stages` turns that into areas, capacitances and
delay tables, and `liberty` writes them down. Names and drive strengths are those of the open 45 nm
libraries, so a netlist reads the same and the two can be exchanged. Areas are published facts of
that node. `python -m flows cells --compare` measures the agreement on our units.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flows.cells.stages import (
    CAP_FF,
    COLUMN_UM2,
    Network,
    Response,
    Stage,
    network,
    propagate,
)

NAME = "vt45"
VERSION = "1"
SLEWS_PS = (1.0, 5.0, 15.0, 40.0, 80.0, 130.0, 200.0)
LOADS_FF = (0.4, 1.8, 3.7, 7.4, 14.8, 29.7, 59.4)  # times the drive strength
HALF = 0.56  # strength of the narrow first stage in buffered X1 cells

# Published column counts that differ from the finger rule of `stages` (transmission gates in the
# flip-flops, breaks in the diffusion).
COLUMNS = {
    "FA_X1": 16,
    "HA_X1": 10,
    "MUX2_X2": 9,
    "XNOR2_X2": 10,
    "AOI222_X1": 8,
    "AOI222_X2": 14,
    "OAI222_X1": 8,
    "OAI222_X2": 14,
    "AOI221_X4": 13,
    "AOI222_X4": 14,
    "OAI221_X4": 13,
    "OAI222_X4": 14,
    "NAND4_X4": 18,
    "NOR3_X4": 14,
    "NOR4_X4": 18,
}

_INVERTING = {
    "INV": "A",
    "NAND2": "A1 & A2",
    "NAND3": "A1 & A2 & A3",
    "NAND4": "A1 & A2 & A3 & A4",
    "NOR2": "A1 | A2",
    "NOR3": "A1 | A2 | A3",
    "NOR4": "A1 | A2 | A3 | A4",
    "AOI21": "(B1 & B2) | A",
    "AOI22": "(A1 & A2) | (B1 & B2)",
    "AOI211": "(C1 & C2) | B | A",
    "AOI221": "(C1 & C2) | (B1 & B2) | A",
    "AOI222": "(A1 & A2) | (B1 & B2) | (C1 & C2)",
    "OAI21": "(B1 | B2) & A",
    "OAI22": "(A1 | A2) & (B1 | B2)",
    "OAI211": "(C1 | C2) & B & A",
    "OAI221": "(C1 | C2) & (B1 | B2) & A",
    "OAI33": "(A1 | A2 | A3) & (B1 | B2 | B3)",
    "OAI222": "(A1 | A2) & (B1 | B2) & (C1 | C2)",
}
_BUFFERED = {
    "BUF": "A",
    "AND2": "A1 & A2",
    "AND3": "A1 & A2 & A3",
    "AND4": "A1 & A2 & A3 & A4",
    "OR2": "A1 | A2",
    "OR3": "A1 | A2 | A3",
    "OR4": "A1 | A2 | A3 | A4",
}
_STRENGTHS = {"INV": (1, 2, 4, 8, 16, 32), "BUF": (1, 2, 4, 8, 16, 32), "OAI33": (1,)}
_BUFFERED_AT_X4 = ("AOI211", "AOI221", "AOI222", "OAI221", "OAI222")


@dataclass(frozen=True)
class FlipFlop:
    """A rising-edge flip-flop: columns of area and the asynchronous control it has, if any."""

    columns: int
    control: str = ""
    strength: float = 1.0


FLIP_FLOPS = {
    "DFF_X1": FlipFlop(17),
    "DFF_X2": FlipFlop(19, strength=2.0),
    "DFFR_X1": FlipFlop(20, "clear"),
    "DFFS_X1": FlipFlop(20, "preset"),
}
# A master-slave flip-flop is four stages from clock to output; set-up is two. In units of the
# fan-out-of-four inverter delay, about 17 ps here.
CLOCK_TO_SLAVE_PS = 68.0
SETUP_PS = (33.0, 29.0)  # data falling, rising


def _stage(output: str, condition: str, strength: float = 1.0) -> Stage:
    return Stage(output, network(condition), strength)


def _cells() -> Iterator[tuple[str, float, tuple[tuple[Stage, ...], ...]]]:
    """Yield name, drive strength and one chain of stages for each output."""
    for name, condition in _INVERTING.items():
        for strength in _STRENGTHS.get(name, (1, 2, 4)):
            chain = (_stage("ZN", condition, strength),)
            if strength == 4 and name in _BUFFERED_AT_X4:
                chain = (_stage("n", condition), _stage("m", "n", 2), _stage("ZN", "m", 4))
            yield f"{name}_X{strength}", strength, (chain,)
    for name, condition in _BUFFERED.items():
        output = "Z" if name == "BUF" else "ZN"
        for strength in _STRENGTHS.get(name, (1, 2, 4)):
            first = HALF if strength == 1 else strength / 2
            chain = (_stage("n", condition, first), _stage(output, "n", strength))
            yield f"{name}_X{strength}", strength, (chain,)
    for strength in (1, 2):
        half = HALF if strength == 1 else strength / 2
        nor = _stage("n", "A | B", half)
        nand = _stage("n", "A & B", half)
        yield f"XOR2_X{strength}", strength, ((nor, _stage("Z", "(A & B) | n", strength)),)
        yield f"XNOR2_X{strength}", strength, ((nand, _stage("ZN", "(A | B) & n", strength)),)
        select = (_stage("sn", "S", half), _stage("n", "(A & sn) | (B & S)", half))
        yield f"MUX2_X{strength}", strength, ((*select, _stage("Z", "n", strength)),)
    half_carry = (_stage("cn", "A & B", HALF), _stage("CO", "cn"))
    half_sum = (_stage("n", "A | B", HALF), _stage("S", "(A & B) | n"))
    yield "HA_X1", 1, (half_carry, half_sum)
    majority = _stage("cn", "(A & B) | (CI & (A | B))", HALF)
    odd = _stage("sn", "((A | B | CI) & cn) | (A & B & CI)", HALF)
    yield "FA_X1", 1, ((majority, _stage("CO", "cn")), (majority, odd, _stage("S", "sn")))


def liberty() -> str:
    """Return the library as liberty text; the same on every machine."""
    axes = {"slews": _row(SLEWS_PS), "loads": _row(LOADS_FF)}
    blocks = [_HEADER.format(name=NAME, version=VERSION, fanout=_fanout(), **axes)]
    blocks += [_logic(name, strength, chains) for name, strength, chains in _cells()]
    blocks += [_constant(f"LOGIC{value}_X1", value) for value in (0, 1)]
    blocks += [_flip_flop(name, cell) for name, cell in FLIP_FLOPS.items()]
    return "\n".join(blocks) + "\n}\n"


def _fanout() -> str:
    """Wire length (in fF) by fan-out: a net's length grows a little faster than its pins."""
    return "\n".join(f"    fanout_length ({n}, {0.31 * n**1.2:.4f});" for n in range(1, 12))


_HEADER = """\
/* {name} {version}: a 45 nm cell library generated by `python -m flows cells`; do not edit.
   Areas from published cell areas, delays from logical effort; see flows/cells. */
library ({name}) {{
  delay_model : table_lookup;
  time_unit : "1ps";
  voltage_unit : "1V";
  current_unit : "1mA";
  pulling_resistance_unit : "1kohm";
  leakage_power_unit : "1nW";
  capacitive_load_unit (1, ff);
  nom_process : 1.0;
  nom_temperature : 25.0;
  nom_voltage : 1.1;
  slew_lower_threshold_pct_fall : 30.0;
  slew_lower_threshold_pct_rise : 30.0;
  slew_upper_threshold_pct_fall : 70.0;
  slew_upper_threshold_pct_rise : 70.0;
  input_threshold_pct_fall : 50.0;
  input_threshold_pct_rise : 50.0;
  output_threshold_pct_fall : 50.0;
  output_threshold_pct_rise : 50.0;
  default_max_transition : 200.0;
  lu_table_template (by_slew_and_load) {{
    variable_1 : input_net_transition;
    variable_2 : total_output_net_capacitance;
    index_1 ("{slews}");
    index_2 ("{loads}");
  }}
  lu_table_template (by_clock_and_data) {{
    variable_1 : related_pin_transition;
    variable_2 : constrained_pin_transition;
    index_1 ("{slews}");
    index_2 ("{slews}");
  }}
  wire_load ("by_fanout") {{
    capacitance : 1.0;
    resistance : 0.0;
    slope : 0.9;
{fanout}
  }}
  default_wire_load : "by_fanout";"""


def _logic(name: str, strength: float, chains: tuple[tuple[Stage, ...], ...]) -> str:
    stages = list(dict.fromkeys(stage for chain in chains for stage in chain))
    inner = {stage.output for stage in stages}
    pins = sorted({p for s in stages for p in s.pull_down.leaves()} - inner)
    columns = COLUMNS.get(name, sum(stage.fingers for stage in stages) + 1)
    lines = [f"  cell ({name}) {{", f"    area : {columns * COLUMN_UM2:.3f};"]
    for pin in pins:
        total = sum(stage.input_ff(pin) for stage in stages)
        lines += _input(pin, total)
    for chain in chains:
        lines += [f"    pin ({chain[-1].output}) {{", "      direction : output;"]
        lines += [f"      max_capacitance : {LOADS_FF[-1] * strength:.1f};"]
        lines += [f'      function : "{_function(chain)}";']
        for pin in pins:
            lines += _timing(chain, pin, strength)
        lines.append("    }")
    return "\n".join([*lines, "  }"])


def _input(pin: str, capacitance: float, *extra: str) -> list[str]:
    body = ["direction : input;", f"capacitance : {capacitance:.3f};", *extra]
    return [f"    pin ({pin}) {{", *(f"      {line}" for line in body), "    }"]


def _function(chain: tuple[Stage, ...]) -> str:
    """Write the last stage's output as a function of the cell's pins."""
    known: dict[str, str] = {}

    def text(part: Network | str) -> str:
        if isinstance(part, str):
            return known.get(part, part)
        return "(" + f" {part.operator} ".join(text(p) for p in part.parts) + ")"

    for stage in chain:
        known[stage.output] = "!" + text(stage.pull_down)
    return known[chain[-1].output]


def _timing(chain: tuple[Stage, ...], pin: str, strength: float) -> list[str]:
    """Write one timing group for each sense in which `pin` moves the output."""
    lines: list[str] = []
    for sense, inverts in (("positive_unate", 0), ("negative_unate", 1)):
        tables: dict[int, list[list[Response]]] = {}
        for edge in (0, 1):
            rows = [
                [propagate(chain, pin, edge ^ inverts, s, c * strength).get(edge) for c in LOADS_FF]
                for s in SLEWS_PS
            ]
            kept = [[cell for cell in row if cell is not None] for row in rows]
            if all(kept):
                tables[edge] = kept
        if tables:
            lines += [
                "      timing () {",
                f'        related_pin : "{pin}";',
                f"        timing_sense : {sense};",
            ]
            for edge, rows in tables.items():
                lines += _tables(edge, rows, strength)
            lines.append("      }")
    return lines


def _tables(edge: int, rows: list[list[Response]], strength: float) -> list[str]:
    word = ("fall", "rise")[edge]
    loads = [c * strength for c in LOADS_FF]
    return [
        *_table(f"cell_{word}", SLEWS_PS, loads, [[r.delay for r in row] for row in rows]),
        *_table(f"{word}_transition", SLEWS_PS, loads, [[r.slew for r in row] for row in rows]),
    ]


def _row(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers)


def _table(
    kind: str, first: Sequence[float], second: Sequence[float], values: list[list[float]]
) -> list[str]:
    body = ", \\\n            ".join(f'"{_row(line)}"' for line in values)
    template = "by_clock_and_data" if kind.endswith("constraint") else "by_slew_and_load"
    return [
        f"        {kind} ({template}) {{",
        f'          index_1 ("{_row(first)}");',
        f'          index_2 ("{_row(second)}");',
        f"          values ({body});",
        "        }",
    ]


def _constant(name: str, value: int) -> str:
    body = f'direction : output; max_capacitance : {LOADS_FF[-1]}; function : "{value}";'
    return f"  cell ({name}) {{\n    area : {2 * COLUMN_UM2:.3f};\n    pin (Z) {{ {body} }}\n  }}"


def _flip_flop(name: str, cell: FlipFlop) -> str:
    control = {"clear": ("RN", "clear"), "preset": ("SN", "preset")}.get(cell.control)
    lines = [f"  cell ({name}) {{", f"    area : {cell.columns * COLUMN_UM2:.3f};"]
    lines += ["    ff (IQ, IQN) {", '      next_state : "D";', '      clocked_on : "CK";']
    if control:
        lines.append(f'      {control[1]} : "!{control[0]}";')
    lines.append("    }")
    setup = ["timing () {", '  related_pin : "CK";', "  timing_type : setup_rising;"]
    for edge, word in enumerate(("fall", "rise")):
        rows = [[SETUP_PS[edge] + 0.15 * (data - clock) for data in SLEWS_PS] for clock in SLEWS_PS]
        setup += [line[6:] for line in _table(f"{word}_constraint", SLEWS_PS, SLEWS_PS, rows)]
    lines += _input("D", 0.7 * CAP_FF, *setup, "}")
    lines += _input("CK", HALF * CAP_FF, "clock : true;")
    if control:
        lines += _input(control[0], CAP_FF)
    out = (_stage("Q", "D", cell.strength),)
    lines += ["    pin (Q) {", "      direction : output;", '      function : "IQ";']
    lines += [f"      max_capacitance : {LOADS_FF[-1] * cell.strength:.1f};"]
    lines += [
        "      timing () {",
        '        related_pin : "CK";',
        "        timing_type : rising_edge;",
    ]
    for edge in (0, 1):
        rows = []
        for slew in SLEWS_PS:
            line = [propagate(out, "D", 1 - edge, 10, c * cell.strength)[edge] for c in LOADS_FF]
            shift = CLOCK_TO_SLAVE_PS + 0.2 * slew
            rows.append([Response(r.delay + shift, r.slew) for r in line])
        lines += _tables(edge, rows, cell.strength)
    lines += ["      }", "    }"]
    return "\n".join([*lines, "  }"])
