# Every target makes its own .venv when there is none, and renews it when pyproject.toml or constraints.txt change.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TORCH := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)
# One thread a process: the matrices are small, and two workers share two cores.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test slow lint audit format types bench bench-quick figures faults fuzz mutants coverage docs picture system-parts constraints clean

help:
	@echo "make demo         optimize Branin in 100 dimensions: live progress, a picture, what to try next"
	@echo "make test         the tests (about ten minutes on two cores)"
	@echo "make slow         the long statistical checks"
	@echo "make lint types   what pre-commit checks; mypy --strict"
	@echo "make audit        known vulnerabilities of the pinned packages (needs the network)"
	@echo "make bench        what one ask costs, and whether it became slower (bench/history.jsonl; five minutes)"
	@echo "make bench-quick  the main comparison in small, about five minutes"
	@echo "make figures      the paper's tables and figures from stored runs"
	@echo "make faults       the fault laboratory: kill, cut, flip and starve running studies (a quarter of an hour)"
	@echo "make fuzz         damaged input of every kind, FUZZ_INPUTS=2000 of each (FUZZ_SEED, FUZZ_TARGETS)"
	@echo "make mutants      mistakes put into the source, by hand and by a tool: do the tests notice? (MUTANTS=60, MUTANTS_SEED, MUTANTS_OF)"
	@echo "make coverage     branch coverage by package, of the fast tests"
	@echo "make docs         the documentation, as pages in build/site (make picture: the README's picture)"

# Torch first and alone: its CPU build then stays, whatever the other packages ask for.
$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -c 'import sys; sys.exit("alebo needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Set PYTHON=python3.11, say." if sys.version_info < (3, 11) else 0)'
	@echo "Setting up .venv (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(TORCH)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(READY)
	$(BIN)/alebo demo

system-parts:
	@scripts/system-parts.sh

test: $(READY) system-parts
	$(BIN)/python -m pytest -n 2

slow: $(READY)
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -q tests/test_licences.py

# Needs the network. --strict: a package that could not be looked up is a failure, not "no known vulnerabilities".
audit: $(READY)
	@test -x build/audit/bin/pip-audit || { $(PYTHON) -m venv build/audit && build/audit/bin/pip install --quiet pip-audit; }
	build/audit/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m alebo.bench.speed_table

bench-quick: $(READY)
	$(BIN)/python -m alebo.bench quick

figures: $(READY)
	$(BIN)/python -m alebo.bench.figures

faults: $(READY)
	$(BIN)/python -m tests.faults

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz

MUTANTS ?= 60
MUTANTS_SEED ?= $(shell date +%Y%m%d)

# The tool that draws mutants has an environment of its own; the tests run in .venv.
mutants: $(READY)
	@test -x build/mutation/bin/cosmic-ray || { $(PYTHON) -m venv build/mutation && build/mutation/bin/pip install --quiet "cosmic-ray>=8.7,<9"; }
	$(BIN)/python -m tests.mutants named
	build/mutation/bin/python tests/mutants/generate.py $(MUTANTS_SEED) $(MUTANTS) build/mutants.json $(MUTANTS_OF)
	$(BIN)/python -m tests.mutants drawn build/mutants.json

coverage: $(READY)
	$(BIN)/python -m pytest -n 2 --cov=alebo --cov-branch --cov-report=json:build/coverage.json --cov-report=
	$(BIN)/python -m tests.coverage build/coverage.json

docs: $(READY)
	$(BIN)/python -m mkdocs build --strict
	@echo "Open build/site/index.html"

picture: $(READY)
	$(BIN)/python -m alebo.bench.readme_picture

# After new packages were tried in .venv: write down exactly what was tested.
constraints:
	@{ echo "# The versions we test with; made by \`make constraints\` from the .venv in which the tests passed."; \
	   $(BIN)/python -m pip freeze --exclude-editable --disable-pip-version-check | grep -E '^[A-Za-z0-9_.-]+==' | sed -E 's/\+[a-z0-9.]+$$//'; \
	 } > .constraints.new && mv .constraints.new constraints.txt && touch $(READY)

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
