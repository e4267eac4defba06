# Vitruvian: most targets run one command of `vitruvian` in .venv.
# `make help` lists the targets.
# Variables:
#   PYTHON           Python 3.11 or newer that creates .venv
#   CXX              C++ compiler
#   ARGS             further arguments of the command
#   JOBS             number of test processes
#   BOARD            board of `make fpga` (default ulx3s)
#   VITRUVIAN_CACHE  folder of compiled models and flow results (default build/cache)

PYTHON ?= python3
CXX ?= g++
JOBS ?= auto
BOARD ?= ulx3s
ARGS ?=
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.stamp
STAMP_DEV := $(VENV)/.stamp-dev
STAMP_FPGA := $(VENV)/.stamp-fpga
STAMP_FORMAL := $(VENV)/.stamp-formal

export AMARANTH_USE_YOSYS := builtin
export PYTHONHASHSEED := 0
export CXX

# A warning, for example of a link that leads nowhere, is an error.
SITE := NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

.DEFAULT_GOAL := help
.PHONY: help sim davinci test area area-all verilog timing fpga formal check docs pictures clean exhaustive elsewhere mutants mutants-rtl fuzz bench bench-all dist compiler
.DELETE_ON_ERROR:
.NOTPARALLEL: # report a missing tool before the set-up begins

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

sim: compiler $(STAMP) ## verify every unit and configuration against golden; classify the digits
	$(PY) -m vitruvian verify $(ARGS)
	$(PY) examples/digits.py

# The matrix product that `make davinci` runs; docs/ contains its timeline.
DAVINCI := kernel matmul --chip ascend310 --cube rtl --size 256x256x256 --tiling 8,2,2,2

davinci: compiler $(STAMP) ## run a matrix product on two simulated DaVinci cores, with the RTL as their Cube
	$(PY) -m vitruvian $(DAVINCI) --timeline --trace build/davinci/matmul.json --gantt build/davinci/matmul.svg $(ARGS)

test: compiler $(STAMP) ## run the whole test suite
	$(PY) -m pytest -n $(JOBS) --dist worksteal $(ARGS)

area: $(STAMP) ## print area and delay of every unit and preset
	$(PY) -m vitruvian area $(ARGS)

area-all: $(STAMP) ## print the same, including the largest units
	$(PY) -m vitruvian area --all $(ARGS)

verilog: $(STAMP) ## write the Verilog of every unit and preset
	$(PY) -m vitruvian verilog $(ARGS)

timing: $(STAMP) ## print the longest paths
	$(PY) -m vitruvian timing $(ARGS)

fpga: $(STAMP_FPGA) ## place and route the design of BOARD (ulx3s); print its resources and clock, write its bitstream
	$(PY) -m vitruvian fpga --board $(BOARD) --bitstream $(ARGS)

formal: $(STAMP_FORMAL) ## prove properties of the RTL, and show the mutations that the proofs catch
	$(PY) -m vitruvian formal --mutations $(ARGS)

elsewhere: compiler $(STAMP) ## run the tests that could depend on the machine as on other processors and with other numbers of threads
	$(PY) -m tests.elsewhere --jobs $(JOBS) $(ARGS)

exhaustive: compiler $(STAMP) ## run the long tests; compare RTL and golden for every input of the small units (hours; resumable)
	$(PY) -m pytest -q -n $(JOBS) --dist worksteal --long -m long
	$(PY) -m vitruvian exhaustive $(ARGS)

fuzz: compiler $(STAMP) ## run 200 hostile command lines: each must end in one line and exit code 2, or in a result
	$(PY) tests/system/fuzz_commands.py $(ARGS)

mutants: compiler $(STAMP) ## run the tests on 200 random mutants of golden, sim, flows and vitruvian (an hour; resumable)
	$(PY) -m tests.mutants $(ARGS)

mutants-rtl: compiler $(STAMP) ## run programs on 200 random mutants of the RTL of a core (ten minutes)
	$(PY) -m tests.mutants.rtl $(ARGS)

bench: compiler $(STAMP) ## measure area, delay, power and speeds of a standard set; print what rose and fell
	$(PY) benchmarks/dashboard.py $(ARGS)

bench-all: compiler $(STAMP) ## run every script of benchmarks (hours)
	@set -e; for script in benchmarks/*.py; do echo "$$script"; $(PY) $$script; done

docs: compiler $(STAMP_DEV) ## regenerate the generated parts of docs/, and build the site in build/site
	$(PY) -m vitruvian docs $(ARGS)
	$(SITE)

pictures: compiler $(STAMP_DEV) ## run again what three pictures of docs/ show: two timing diagrams, one timeline
	$(PY) -m vitruvian.sim.bench.cube.waveform
	$(PY) -m vitruvian.sim.bench.fp.waveform
	$(PY) -m vitruvian $(DAVINCI) --gantt docs/units/davinci_matmul.json

check: compiler $(STAMP_DEV) ## run ruff, pyright, a short `make sim`, the fast tests and the docs build
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright --pythonpath $(PY)
	$(PY) -m vitruvian verify --vectors 1000
	$(PY) -m pytest -q -n $(JOBS) --dist worksteal -m "not slow" $(ARGS)
	$(PY) -m vitruvian docs --check
	$(SITE)

dist: $(STAMP) ## build the wheel and the sdist in dist/, the same bytes from the same files
	rm -rf dist
	$(PY) -m hatchling build
	@cd dist && $(abspath $(PY)) -c 'import glob, hashlib; [print(hashlib.sha256(open(f, "rb").read()).hexdigest(), f) for f in sorted(glob.glob("*"))]'

clean: ## remove build results and caches (.venv stays)
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

compiler:
	@for tool in "$(CXX)" perl; do command -v $$tool >/dev/null 2>&1 || \
	  { echo "error: $$tool not found; install it (Debian: apt install g++ make perl)" >&2; exit 2; }; done

# The stamp is written last, so .venv is complete if it exists. The file .venv-incomplete marks a set-up that
# began and did not end; the next set-up then starts from an empty folder.
$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null 2>&1 || \
	  { echo "error: $(PYTHON) not found; install Python 3.11 or newer or set PYTHON=" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: PYTHON must be Python 3.11 or newer, not $$($(PYTHON) -V 2>&1)" >&2; exit 2; }
	@rm -f $(STAMP) $(STAMP_DEV) $(STAMP_FPGA) $(STAMP_FORMAL)
	@if [ -e .venv-incomplete ]; then rm -rf $(VENV); fi
	@touch .venv-incomplete
	@if [ ! -x $(PY) ]; then rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); fi
	@echo "setting up $(VENV) (a few minutes the first time)"
	@$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt hatchling editables
	@$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[all,test]'
	@rm -f .venv-incomplete
	@touch $@

$(STAMP_DEV): $(STAMP)
	@$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[all,test,dev]'
	@touch $@

$(STAMP_FPGA): $(STAMP)
	@$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[all,test,fpga]'
	@touch $@

$(STAMP_FORMAL): $(STAMP)
	@$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[all,test,formal]'
	@touch $@
