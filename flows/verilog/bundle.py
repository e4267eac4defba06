"""Write a unit with all that people without Python need to check it: a bundle.

A bundle is a folder with the Verilog of a unit, golden test vectors, a self-checking bench in plain
Verilog, and a Makefile that runs the bench on Icarus Verilog and on Verilator.
"""

from collections.abc import Collection
from pathlib import Path

from vitruvian.common.errors import UserError
from vitruvian.common.files import differing, write_all
from vitruvian.flows.verilog import emit, sv_package
from vitruvian.flows.verilog.bench_text import bench, memories
from vitruvian.flows.verilog.ipxact import component, ports_of
from vitruvian.flows.verilog.packages import VERILATOR_FLAGS, VERSION, core, core_name, ip_script
from vitruvian.flows.verilog.register_files import register_files
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.sim.bench.vectors import GoldenVectors, golden_vectors

#: Number of vectors by default.
VECTORS = 500

_MAKEFILE = """\
# Checks {module} against golden vectors, without Python.
# `make` uses the simulators that are installed; `make icarus`, `make verilator` and `make lint`
# use one. A difference ends them with an error.
IVERILOG ?= iverilog
VVP ?= vvp
VERILATOR ?= verilator
VERILATOR_FLAGS ?= {flags}
SOURCES = rtl/{module}.v tb/{module}_tb.v

check:
	@found=; \\
	if command -v $(IVERILOG) > /dev/null; then found=1; $(MAKE) icarus || exit 1; fi; \\
	if command -v $(VERILATOR) > /dev/null; then found=1; $(MAKE) verilator || exit 1; fi; \\
	test -n "$$found" || {{ echo "install Icarus Verilog, or Verilator 5 or newer"; exit 1; }}

# The exit code alone would not show a bench that ends early.
define run
	$(1) > build/$@.log 2>&1; code=$$?; cat build/$@.log; \\
	test $$code -eq 0 && grep -q "^PASS " build/$@.log
endef

icarus: build/{module}.vvp
{runs_icarus}
verilator: build/verilator/V{module}_tb
{runs_verilator}
lint:
	$(VERILATOR) --lint-only -Wall --top-module {module} rtl/{module}.v

build/{module}.vvp: $(SOURCES)
	@mkdir -p build
	$(IVERILOG) -g2005 -Wall -Wno-timescale -s {module}_tb -o $@ $(SOURCES)

build/verilator/V{module}_tb: $(SOURCES)
	@mkdir -p build
	$(VERILATOR) --binary --timing $(VERILATOR_FLAGS) --Mdir build/verilator \\
		--top-module {module}_tb $(SOURCES)

clean:
	rm -rf build

.PHONY: check icarus verilator lint clean
"""

_README = """\
# {module}

{summary}

| file | content |
|---|---|
| `rtl/{module}.v` | the unit; its header describes ports, codes, latency and arithmetic |
{types}{files}{registers}| `{module}.core` | the core `{core}` of FuseSoC |
| `component.xml` | the ports and files in IP-XACT (IEEE 1685-2014) |
| `vivado/package_ip.tcl` | `vivado -mode batch -source` this, to make an IP of Vivado |

{check}

These files were made by:

```
vitruvian bundle {arguments} --vectors {vectors} --seed {seed}
```
"""

_FILES = """\
| `tb/{module}_tb.v` | a self-checking bench in plain Verilog-2005 |
| `vectors/*.hex` | {count} expected words and the inputs for them, for `$readmemh` |
| `Makefile` | `make` runs the bench on Icarus Verilog and on Verilator, those that are installed |
"""

_CHECK = """\
The bench prints `PASS` and the number of vectors. If a bit differs, it prints the first mismatches
in hexadecimal, and `make` ends with an error. `make lint` shows that the Verilog has no warnings
under `verilator -Wall`. The vectors are stimuli like those of the unit's own bench with the results
of the golden model, which does not know the hardware.

{rule}"""

_TYPES = """\
| `rtl/{module}_pkg.sv` | packed structures for the ports that have fields, in SystemVerilog |
"""

_REGISTERS = """\
| `{module}_registers.h`, `{module}_registers.py` | offsets, fields and codes of the registers, \
in C and in Python |
"""

_RULE_STREAMS = """\
Words are sent and taken with random stalls; to change or stop them, run the program that `make`
leaves in `build/` with `+seed=N` or `+stalls=0`."""
_RULE_LATENCY = "A vector is sent in every cycle, and its result is compared {latency} later."
_RULE_LINE = """\
The bench sends requests over the serial line, each one after the response to the one before, and
compares every byte."""


def files(variant: Variant, *, vectors: int = VECTORS, seed: int = 1) -> dict[str, str]:
    """Return the texts of a bundle by the names of the files in it.

    Parameters
    ----------
    vectors : int
        Approximate number of expected words.
    seed : int
        Seed of the stimuli.

    Raises
    ------
    UserError
        If the unit cannot be built, or if there are too few vectors.
    """
    golden = golden_vectors(variant, count=vectors, seed=seed)
    text, module, summary = emit.stored(variant), variant.module, variant.unit.summary
    ports = ports_of(text, module)
    names = [port.name for port in ports]
    words, registers = memories(golden), register_files(variant)
    types = {f"rtl/{name}": content for name, content in sv_package.files(variant).items()}
    return {
        f"rtl/{module}.v": text,
        **types,
        f"{module}.core": core(module, summary=summary, vectors=list(words)),
        "component.xml": component(
            module, summary=summary, version=VERSION, ports=ports, files=[f"rtl/{module}.v"]
        ),
        "vivado/package_ip.tcl": ip_script(module, summary=summary, ports=names),
        "README.md": _readme(variant, golden, vectors, seed, [*types, *registers]),
        **registers,
        f"tb/{module}_tb.v": bench(module, golden, ports=names),
        **{f"vectors/{name}": content for name, content in words.items()},
        "Makefile": _makefile(module, golden),
    }


def write(
    variant: Variant,
    folder: Path,
    *,
    vectors: int = VECTORS,
    seed: int = 1,
    replace: bool = False,
) -> dict[str, Path]:
    """Write a bundle into ``folder``, all of it or nothing.

    Parameters
    ----------
    variant, vectors, seed
        As for ``files``.
    replace : bool
        If True, files of the same names are replaced, even if a user has edited them.

    Returns
    -------
    paths : dict of str to Path
        The written files by their names in the bundle.

    Raises
    ------
    UserError
        If a file of the bundle exists with another content and ``replace`` is False.
    """
    # All texts are made before the first one is written, so that a mistake leaves no half of a
    # bundle.
    texts = files(variant, vectors=vectors, seed=seed)
    paths = {name: folder / name for name in texts}
    contents = {paths[name]: text for name, text in texts.items()}
    # The same files again are no loss: a bundle may be made twice.
    others = [] if replace else differing(contents)
    if others:
        more = f" and {len(others) - 1} more differ" if len(others) > 1 else " differs"
        raise UserError(
            f"{folder} must be a new folder, or hold the same files as would be written, but "
            f"{others[0].relative_to(folder)}{more}; --force replaces files"
        )
    write_all(contents)
    return paths


def _makefile(module: str, golden: GoldenVectors) -> str:
    # A unit may pass with stalls and fail at full rate, or the other way round.
    plusargs = ["", " +stalls=0"] if golden.interface.has_streams else [""]
    run = "\t@$(call run,{})\n"
    return _MAKEFILE.format(
        module=module,
        flags=" ".join(VERILATOR_FLAGS),
        runs_icarus="".join(run.format(f"$(VVP) -n $<{more}") for more in plusargs),
        runs_verilator="".join(run.format(f"./$<{more}") for more in plusargs),
    )


def _readme(
    variant: Variant, golden: GoldenVectors, vectors: int, seed: int, more: Collection[str]
) -> str:
    module, summary = variant.module, variant.unit.summary
    if golden.bit_cycles:
        rule = _RULE_LINE
    elif golden.interface.has_streams:
        rule = _RULE_STREAMS
    else:
        rule = _RULE_LATENCY.format(latency=f"{golden.latency} cycle{'s' * (golden.latency != 1)}")
    return _README.format(
        module=module,
        summary=f"{summary[0].upper()}{summary[1:]}.",
        files=_FILES.format(module=module, count=golden.count),
        types=_TYPES.format(module=module) if f"rtl/{module}_pkg.sv" in more else "",
        registers=_REGISTERS.format(module=module) if f"{module}_registers.h" in more else "",
        core=core_name(module),
        check=_CHECK.format(rule=rule),
        arguments=variant.arguments,
        vectors=vectors,
        seed=seed,
    )
