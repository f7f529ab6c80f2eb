# Every target installs what it needs first; a second run goes straight to work, without network.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
ARGS ?=
AGENTS ?= agents.order:agent agents.promotion:agent agents.faq:agent agents.logistics:agent

BIN := $(VENV)/bin
NODE := tests/interop/node/node_modules
COMPARISON := $(VENV)/semantic-router
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COMPILE := CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile --quiet --strip-extras --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	--unsafe-package agent-reach-dispatcher --unsafe-package pip --unsafe-package setuptools

.PHONY: help
help: ## list these targets
	@sed -nE 's/^([a-z]+):.*## (.*)$$/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name text; \
		do printf '  make %-10s %s\n' "$$name" "$$text"; done

.PHONY: setup
setup: $(VENV)/.dev $(NODE)/.installed ## create the virtual environment with everything development needs

.PHONY: encoders
encoders: $(VENV)/.encoders ## install torch and the encoders beside the packaged one, for their tests

.PHONY: demo
demo: $(VENV)/.server ## route, deliver and merge three requests in one process, and show how
	@$(BIN)/python -m agents.demo $(ARGS)

.PHONY: run
run: $(VENV)/.server ## serve on 127.0.0.1:8080 with the sample agents until Ctrl-C
	@exec $(BIN)/dispatcher run --development $(addprefix --agent ,$(AGENTS)) $(ARGS)

# One thread of linear algebra in each process: there are more processes than cores, and threads that wait for each
# other spin, which makes routing's tests cost four times as much.
.PHONY: test
test: export OMP_NUM_THREADS := 1
test: export OPENBLAS_NUM_THREADS := 1
test: $(VENV)/.dev $(NODE)/.installed ## run every test, beside a private RabbitMQ and PostgreSQL
	@.ci/services $(BIN)/python
	@$(BIN)/python -m tests.services -- \
		$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --cov --cov-report=term:skip-covered $(ARGS)

.PHONY: faults
faults: $(VENV)/.dev ## break one thing after the other under load and check the books (`make faults ARGS="4 22"`)
	@.ci/services $(BIN)/python
	@$(BIN)/python -m tests.faults $(ARGS)

.PHONY: check
check: lint types contracts ## run everything that needs no service: lint, types, import contracts, architecture
	@$(BIN)/python -m pytest -q tests/architecture

.PHONY: lint
lint: $(VENV)/.dev ## ruff: rules and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: types
types: $(VENV)/.dev ## mypy, strict
	@$(BIN)/mypy

.PHONY: contracts
contracts: $(VENV)/.dev ## import-linter: who may import whom
	@$(BIN)/lint-imports

.PHONY: notebooks
notebooks: $(VENV)/.jupyter ## open the notebooks in a browser, on 127.0.0.1 only
	@$(BIN)/jupyter nbclassic --ip=127.0.0.1 --notebook-dir=notebooks $(ARGS)

.PHONY: bench
bench: $(VENV)/.dev ## time a routing decision beside the bare thing (docs/performance.md has more)
	@$(BIN)/dispatcher bench route $(ARGS)

.PHONY: comparison
comparison: $(VENV)/.dev $(COMPARISON)/.installed ## route beside semantic-router (`make comparison ARGS=DATASET_DIR`)
	@$(BIN)/python -m tests.comparison --python $(COMPARISON)/bin/python $(ARGS)

.PHONY: docs
docs: $(VENV)/.dev ## check links and published schemas (`make docs ARGS=--write` renders the schemas)
	@$(BIN)/python -m tests.architecture.schemas $(ARGS)
	@$(BIN)/python -m pytest -q tests/architecture/test_documents.py

.PHONY: lock
lock: $(VENV)/.dev ## resolve the pinned requirement files anew from pyproject.toml
	@$(COMPILE) --allow-unsafe --only-build-deps --all-build-deps -o requirements/build.lock pyproject.toml
	@$(COMPILE) --extra server --extra postgres -o requirements/server.lock pyproject.toml
	@$(COMPILE) --extra dev -c requirements/server.lock -o requirements/dev.lock pyproject.toml
	@$(COMPILE) --extra jupyter -c requirements/dev.lock -o requirements/jupyter.lock pyproject.toml
	@$(COMPILE) --extra server --extra postgres --extra embed -c requirements/server.lock \
		-P torch==2.13.0 -o requirements/embed.lock pyproject.toml
	@$(COMPILE) --extra encoders -c requirements/dev.lock \
		-P torch==2.13.0 -o requirements/encoders.lock pyproject.toml
	@$(COMPILE) -o requirements/comparison.lock requirements/comparison.txt
	@sed -i -E 's/^(torch==[0-9.]+)\+cpu$$/\1/' requirements/embed.lock requirements/encoders.lock

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; name one with PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
		|| { echo "Python's venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The package itself goes in last and without build isolation, so that no step after the locks asks a registry.
$(VENV)/.server: requirements/build.lock requirements/server.lock pyproject.toml | $(BIN)/python
	@echo "installing the server into $(VENV)"
	@$(PIP) -r requirements/build.lock -r requirements/server.lock
	@PYTHONWARNINGS=ignore $(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.server
	@echo "installing the development tools into $(VENV)"
	@$(PIP) -r requirements/dev.lock
	@touch $@

$(VENV)/.jupyter: requirements/jupyter.lock $(VENV)/.dev
	@echo "installing the notebook server into $(VENV)"
	@$(PIP) -r requirements/jupyter.lock
	@touch $@

# About 1.3 GB and two minutes where pip's index has torch for the CPU; elsewhere its CUDA libraries come with it,
# gigabytes, which has to be noticed.
$(VENV)/.encoders: requirements/encoders.lock $(VENV)/.dev
	@echo "installing torch into $(VENV)"
	@$(PIP) "$$(grep -m1 '^torch==' requirements/encoders.lock)"
	@.ci/without-cuda $(BIN)/python
	@echo "installing the encoders into $(VENV)"
	@$(PIP) -r requirements/encoders.lock
	@touch $@

# 300 MB, in an environment of its own: it brings the clients of a dozen vendors.
$(COMPARISON)/.installed: requirements/comparison.lock | $(BIN)/python
	@echo "installing semantic-router into $(COMPARISON)"
	@$(PYTHON) -m venv $(COMPARISON)
	@$(COMPARISON)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/comparison.lock
	@touch $@

# An AMQP client of another language, and published schemas; without them the tests that need them are skipped.
$(NODE)/.installed: tests/interop/node/package.json tests/interop/node/package-lock.json
	@echo "installing what the tests take from npm"
	@{ cd tests/interop/node && npm ci --silent && touch node_modules/.installed; } \
		|| { echo "npm did not install it: tests with an agent in Node will be skipped" >&2; [[ $${CI:-} != true ]]; }
