# `make` shows skillrun at work, `make test` proves it, `make help` lists the rest.
# Another Python: make PYTHON=python3.12

.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:
.PHONY: demo docs conformance install test test-all fuzz soak lint format bench help clean

VENV := .venv
BIN := $(VENV)/bin
TOUR := build/tour

# The first Python that is new enough; asked here, so that a machine whose `python3` is old still works.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$name -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$name && break; done)

demo: install ## make .venv, install, run the example skills confined, watch an attack fail (the default)
	@mkdir -p $(TOUR) && cp -R skills/deploy-checker/example/. skills/table-tools/example/. $(TOUR)
	@printf '\n== The example skills, and what each one asks for\n'
	$(BIN)/skillrun list skills
	@printf '\n== A skill that asks for nothing\n'
	$(BIN)/skillrun run skills/hello -- Ada
	@printf '\n== What a skill asks for, what is cut, what is enforced\n'
	$(BIN)/skillrun show --ceiling default --workspace $(TOUR) skills/deploy-checker
	@printf '\n== It runs with what is left: no report file, no network\n'
	$(BIN)/skillrun run --ceiling default --workspace $(TOUR) skills/deploy-checker -- --env staging
	@printf '\n== The operator allows one folder to write to, still no network\n'
	$(BIN)/skillrun run --ceiling skills/ceiling.yaml --workspace $(TOUR) skills/deploy-checker -- --env staging
	@ls $(TOUR)/out
	@printf '\n== Python with options, shell, Node\n'
	$(BIN)/skillrun run --ceiling default --workspace $(TOUR) skills/table-tools -- prices.csv --sort price --numeric
	@printf 'INFO up\nERROR disk 91%% full\nERROR disk 95%% full\n' > $(TOUR)/app.log
	$(BIN)/skillrun run --ceiling default --workspace $(TOUR) skills/log-digest -- app.log
	@if command -v node >/dev/null; then set -x; \
		$(BIN)/skillrun run --ceiling default --workspace $(TOUR) skills/json-query -- service data/shop.json; \
	else echo "skills/json-query is left out: there is no node on this machine"; fi
	@printf '\n== A hostile skill without a sandbox: this is what is open to every script\n'
	$(BIN)/python skills/escape-artist/bait.py --expect open -- skills/escape-artist/scripts/escape.py
	@printf '\n== The same skill confined\n'
	$(BIN)/python skills/escape-artist/bait.py --expect blocked -- \
		$(BIN)/skillrun run --ceiling skills/ceiling.yaml --workspace $(TOUR) skills/escape-artist --

install: $(VENV)/installed ## make .venv and install skillrun into it, editable

test: $(VENV)/installed-test lint ## install what the tests need, lint, check types, run the tests
	@$(BIN)/python -m compileall -q skillrun # once, also where Python may not write it: tests start hundreds of programs
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: $(VENV)/installed-test lint ## the long form of every proof as well
	SKILLRUN_FUZZ=$${SKILLRUN_FUZZ:-5000} $(BIN)/python -m pytest -n 2 --dist worksteal --timeout 1800 -m "not alone"
	$(BIN)/python -m pytest --timeout 1800 -m alone

fuzz: $(VENV)/installed-test ## random inputs, many more than `make test` tries
	SKILLRUN_FUZZ=$${SKILLRUN_FUZZ:-20000} SKILLRUN_FUZZ_LAUNCH=$${SKILLRUN_FUZZ_LAUNCH:-200000} \
		$(BIN)/python -m pytest -n 2 --timeout 36000 -k "fuzz or random or propert"

soak: $(VENV)/installed-test ## 10,000 runs of every kind at each level, 16 at once: nothing grows
	SKILLRUN_SOAK=$${SKILLRUN_SOAK:-10000} $(BIN)/python -m pytest -s tests/soak --timeout 36000

# Node 22 comes from npm itself: the suite does not start on an older one. Nothing is fetched after that.
SUITE := tests/conformance/.npm
$(SUITE)/installed: Makefile
	npm install --silent --no-audit --no-fund --prefix $(SUITE) node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12
	PATH="$(CURDIR)/$(SUITE)/node_modules/.bin:$$PATH" npm install --silent --no-audit --no-fund --prefix $(SUITE) \
		@modelcontextprotocol/inspector@2.12.0
	@touch $@

conformance: $(VENV)/installed-test $(SUITE)/installed ## the public MCP suite and the inspector against `skillrun mcp`
	$(BIN)/python tests/conformance/run.py $(SUITE)/node_modules/.bin

lint: $(VENV)/installed-test ## ruff, its format and mypy, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed-test ## let ruff mend and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install ## measure side by side against what others do, as far as it can be installed
	@if command -v npm >/dev/null; then \
		npm install --silent --no-audit --no-fund --prefix bench/.npm @anthropic-ai/sandbox-runtime || true; fi
	@test -x bench/.peers/bin/python || $(BIN)/python -m venv bench/.peers 2>/dev/null || true
	@bench/.peers/bin/python -m pip install --quiet --disable-pip-version-check sandlock agno pydantic-ai-skills || true
	@$(BIN)/python -m compileall -q skillrun # as an installation has it
	$(BIN)/python -m bench

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian's python3 has venv without ensurepip until python3-venv is installed; pip or virtualenv can stand in.
$(BIN)/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(NEW_ENOUGH)' || { \
		echo "error: skillrun needs Python 3.10 or newer; name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null \
	|| { $(PYTHON) -m venv --clear --without-pip $(VENV) 2>/dev/null \
		&& $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; } \
	|| $(PYTHON) -m virtualenv --quiet --clear $(VENV) 2>/dev/null \
	|| { rm -rf $(VENV); \
		echo "error: $(PYTHON) can't make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; \
		exit 1; }

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/installed

docs: install ## write the generated parts of the documentation
	$(BIN)/python docs/generate.py
