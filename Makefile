# Everything that is run here is run from .venv, which `make setup` fills. The other targets set it up if need be.

PYTHON ?= python3
ARGS ?=
# Tests draw at random from this: 1 unless it is given. `make test-long` picks another one each time.
SEED ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Python compiles what it imports: to compile everything at once would take longer than to install it.
INSTALL := $(PIP) install -q --no-compile --no-build-isolation -c constraints.txt
LATER := { tail -n 3 .venv/warm-up.log >&2; echo "Kernels are not compiled yet: the first match does it." >&2; }
# A stamp is the last thing written: where it is missing or old, the set-up was not finished and is done again.
# To run Harken on Spark takes less than to develop it: the demo waits for the first stamp only.
RUN_STAMP := .venv/.harken-run
STAMP := .venv/.harken-setup
# One worker has the Spark that tests share; another runs those that start processes with a Spark of their own. Both
# wait as often as they compute: a third worker keeps two cores busy. What it imports is kept compiled for all processes.
# Strings are hashed alike in every run, so that sets have the same order.
PYTEST = env -u PYTHONDONTWRITEBYTECODE HARKEN_SEED=$(or $(SEED),1) PYTHONHASHSEED=$(or $(SEED),1) \
    $(BIN)/python -m pytest -q -n 3 --dist loadgroup

QUICK := tests/test_architecture.py tests/test_walks.py $(wildcard tests/unit/test_*.py) $(addprefix tests/unit/, \
    schema language events codes matchers live operators versions toml concurrency)

.PHONY: help setup demo quick test test-long check format docs bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv, with everything pinned in constraints.txt and a Java for Spark
	@echo "Harken is set up in .venv. Try: make demo"

demo: $(RUN_STAMP) ## a day of auctions through the pipeline on Spark, and a report: harken-demo/report.html
	@$(BIN)/harken demo $(ARGS)

quick: $(STAMP) ## the library alone, with few examples: a minute; ARGS="-k name" narrows it
	HARKEN_QUICK=1 $(PYTEST) $(QUICK) $(ARGS)

test: $(STAMP) ## the whole suite but for the slow tests; ARGS="-k name" narrows it
	$(PYTEST) $(ARGS)

test-long: SEED := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
test-long: $(STAMP) ## the whole suite, with the slow tests and many more examples, from a new seed; SEED=n repeats one
	@echo "To repeat this run: make test-long SEED=$(SEED)"
	HARKEN_LONG=1 $(PYTEST) --hypothesis-seed=$(SEED) $(ARGS); \
	    status=$$?; echo "To repeat this run: make test-long SEED=$(SEED)"; exit $$status

check: $(STAMP) ## lint, formatting, types, names and words
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/python .ci/lint.py

format: $(STAMP) ## format the code, and fix what the linter can fix
	$(BIN)/python -m ruff check --fix-only --quiet
	$(BIN)/python -m ruff format

docs: $(STAMP) ## write docs/api.md from the docstrings, and the site into build/site
	$(BIN)/python docs/make_api.py
	$(BIN)/python docs/make_site.py

bench: $(STAMP) ## run every script in benchmarks/
	@for script in benchmarks/*.py; do \
	    [ -e "$$script" ] || { echo "There are no benchmarks yet."; break; }; \
	    echo "== $$script"; \
	    $(BIN)/python "$$script" $(ARGS) || exit 1; \
	done

clean: ## remove caches and builds; .venv stays
	rm -rf build dist .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src lab tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN_STAMP): pyproject.toml lab/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Harken needs Python 3.11 or later, which $(PYTHON) is not. Try: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$(PYTHON) cannot make environments with pip: install its venv package (python3-venv on Debian)." >&2; exit 1; }
	@echo "Setting up .venv. The first time this takes a minute."
	@$(PIP) --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@# Build backends come first and pip fetches none of its own: so they are pinned too. setuptools is for pyspark, and
	@# vl-convert-python brings the scripts that draw the charts of the server's page.
	@$(INSTALL) hatchling setuptools vl-convert-python
	@$(INSTALL) -e . -e lab
	@# The kernels are compiled when they are first used, and kept: better now than in the middle of a demo or a test.
	@echo "Bringing Spark and, meanwhile, compiling the kernels."
	@$(BIN)/harken warm-up >.venv/warm-up.log 2>&1 & kernels=$$!; \
	    $(INSTALL) -e '.[spark]'; status=$$?; wait $$kernels || $(LATER); exit $$status
	@# Spark needs a Java. Where there is none, one comes as a package; where that fails too, all but Spark works.
	@$(BIN)/python -m harken.spark.java >/dev/null 2>&1 || $(INSTALL) -e '.[java,spark]' >/dev/null 2>&1 || true
	@$(BIN)/python -m harken.spark.java || true
	@touch $@

$(STAMP): $(RUN_STAMP)
	@echo "Bringing what tests and checks need and, meanwhile, compiling the papers' kernels: all tests share them."
	@$(BIN)/harken warm-up-papers >.venv/warm-up.log 2>&1 & kernels=$$!; \
	    $(INSTALL) -e '.[dev]' -e 'lab[databases,plots]'; status=$$?; wait $$kernels || $(LATER); exit $$status
	@# What warns when it is compiled would fail the tests that import it first.
	@$(BIN)/python -W ignore -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 || true
	@touch $@
