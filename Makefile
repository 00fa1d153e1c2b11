# Two commands do all the set-up on a machine with python3 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO ?= demo-output
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

include sdk_tool/targets.mk

.DEFAULT_GOAL := help
.PHONY: help demo quick test costs lint types contracts docs site check bench bench-against soak clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) || { echo "python3 lacks venv: on Debian, apt-get install python3-venv"; exit 1; }

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-site: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[site]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed  ## a small 4-rank job: one file, a query, a Perfetto trace, and what is slow in it
	rm -rf $(DEMO)
	$(BIN)/rocpd simulate -o $(DEMO)/job --ranks 4
	$(BIN)/rocpd merge $(DEMO)/job/rank*.db -d $(DEMO)
	$(BIN)/rocpd query "select rank, count(*) as kernels, sum(duration) / 1e6 as ms from kernels group by rank" $(DEMO)/merged.db
	$(BIN)/rocpd convert --format pftrace -d $(DEMO) $(DEMO)/merged.db
	@$(MAKE) --no-print-directory demo-record
	@echo
	@echo "The job:            $(DEMO)/job/rank0.db … rank3.db (what a profiler leaves, one file per process)"
	@echo "One database:       $(DEMO)/merged.db (try: sqlite3 $(DEMO)/merged.db 'select * from top_kernels')"
	@echo "A Perfetto trace:   $(DEMO)/out_results.pftrace (open it at https://ui.perfetto.dev)"
	@echo "The command:        $(BIN)/rocpd --help (or: source $(BIN)/activate)"
	@echo "What is slow in it: $(BIN)/rocpd summary $(DEMO)/merged.db"
	@echo
	@$(BIN)/rocpd summary --no-pager $(DEMO)/merged.db

# A part of the time of tests is waiting, for processes and timers: half as many workers again as there are cores.
WORKERS ?= $(shell echo $$(($$(nproc) * 3 / 2)))

# Hundreds of commands are started: each would compile the package anew.
quick test costs soak: export PYTHONDONTWRITEBYTECODE =

quick: $(VENV)/.installed-test  ## the tests that cost little: a minute on two cores
	$(BIN)/python -m pytest -n $(shell nproc) --dist worksteal -m "not slow" -q

test: $(VENV)/.installed-test  ## all tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

costs: $(VENV)/.installed-test  ## measure which tests are slow: writes tests/slow.txt
	$(BIN)/python -m tests.costs -n $(shell nproc)

lint: $(VENV)/.installed-test  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test  ## mypy --strict
	$(BIN)/mypy

contracts: $(VENV)/.installed-test  ## imports point down
	$(BIN)/lint-imports

docs: $(VENV)/.installed-test  ## regenerate the reference pages
	$(BIN)/python -m docs.generate

site: $(VENV)/.installed-site  ## the documentation as a web site, in site/
	$(BIN)/python -m docs.site site

check: lint types contracts  ## everything but the tests
	$(BIN)/python -m docs.generate --check

bench: $(VENV)/.installed-test  ## benchmarks: ratios side by side in one run
	$(BIN)/python -m benchmarks

bench-against: $(VENV)/.installed-test  ## CPU time of commands with an earlier commit and with the tree: BASE=COMMIT
	@test -n "$(BASE)" || { echo "say with which commit: make bench-against BASE=HEAD~10"; exit 2; }
	$(BIN)/python -m benchmarks --against $(BASE)

soak: $(VENV)/.installed-test  ## samples in full: 20,000 damaged files, clocks of 200 seeds; says how long, goes on where it was cut off
	$(BIN)/python -m tests.soak

clean:  ## remove what was built
	rm -rf $(VENV) $(DEMO) site .soak .pytest_cache .mypy_cache .ruff_cache .hypothesis
