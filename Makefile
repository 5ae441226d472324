# Everything runs in .venv; nothing else on the machine is touched. `make PYTHON=python3.12 install` picks the Python.

PYTHON ?= python3
ITERATIONS ?= 3
PORT ?= 4200
TESTS ?=

VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/installed

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# No telemetry, and time for a slow machine to start Prefect's embedded server. Whatever server or profile the user
# works with, ours is the embedded one. (The loop without make: tasks/environment.py.)
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS := 180
export DVC_NO_ANALYTICS := 1
unexport PREFECT_API_URL PREFECT_API_KEY PREFECT_PROFILE PREFECT_HOME
# A sourced ROS puts its own Python packages and pytest plugins in front of ours.
unexport PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help install demo serve test check docs constraints clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Create .venv with the versions of constraints.txt

demo: $(INSTALLED) ## Run three Real-Sim-Real iterations in the workspace demo/
	$(PY) -m flows.rsr_loop --iterations $(ITERATIONS) --workspace demo

serve: $(INSTALLED) ## Bring up Prefect's server, a worker and the deployments on this machine
	$(PY) -m flows.serve --port $(PORT)

test: $(INSTALLED) ## Run the tests; TESTS=tests/sessions picks some
	$(PY) -m pytest $(TESTS)

check: $(INSTALLED) ## Lint, format check, types of rsr, direction of imports
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports

docs: $(INSTALLED) ## Build docs/ as HTML in build/docs
	$(PY) -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(VENV)/bin/mkdocs build --strict --site-dir build/docs

constraints: $(INSTALLED) ## Write constraints.txt anew: the newest versions that pyproject.toml allows
	@mkdir -p build
	$(PY) -m pip install --dry-run --ignore-installed --quiet --report build/resolved.json \
	    --editable '.[dev,docs,gnn,hdf5,rerun,ros,s3,scale]'
	$(PY) .ci/constraints.py build/resolved.json constraints.txt

clean: ## Remove what make created, except the workspace demo/
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './demo/*' -prune -exec rm -rf {} +

# Written last, so that an interrupted install starts again.
$(INSTALLED): pyproject.toml constraints.txt | $(VENV)/bin/pip
	@echo "Installing into $(VENV): a few minutes and 3 GB the first time."
	$(PY) -m pip install $(if $(MAKE_TERMERR),,--quiet) --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "rsr needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo not there)." >&2; \
	    echo "Name another one: make install PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
