# Everything runs in .venv; nothing else on the machine is touched. `make PYTHON=python3.12 install` picks the Python.

PYTHON ?= python3
ITERATIONS ?= 3
PORT ?= 4200
TESTS ?=
# Test processes side by side: each fills a core, and takes up to 3 GB.
WORKERS ?= 2
# The address of an index to take torch from besides pip's own, such as PyTorch's with the builds for CPU.
TORCH_INDEX ?=

VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/installed
INSTALLED_DEV := $(VENV)/installed-dev
# Python compiles what is imported, when it is; pip would compile everything (0.3 GB).
PIP_INSTALL = $(PY) -m pip install --no-compile --constraint constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
# A file's tests stay in one process, where they share what they set up. The order is that of tests/conftest.py.
PYTEST = OMP_NUM_THREADS=1 $(PY) -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# No telemetry, and time for a slow machine to start Prefect's embedded server. Whatever server or profile the user
# works with, ours is the embedded one. (The loop without make: tasks/environment.py.)
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS := 180
export DVC_NO_ANALYTICS := 1
unexport PREFECT_API_URL PREFECT_API_AUTH_STRING PREFECT_API_KEY PREFECT_PROFILE PREFECT_HOME
# A sourced ROS puts its own Python packages and pytest plugins in front of ours.
unexport PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help install demo serve test test-all check docs constraints clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Create .venv with the versions of constraints.txt

demo: $(INSTALLED) ## Run three Real-Sim-Real iterations in the workspace demo/
	$(VENV)/bin/rsr-loop --iterations $(ITERATIONS) --workspace demo --scenario push_cube

serve: $(INSTALLED) ## Bring up Prefect's server, a worker and the deployments on this machine
	$(VENV)/bin/rsr-serve --port $(PORT)

test: $(INSTALLED_DEV) ## Run the quick tests; TESTS=tests/sessions picks some
	$(PYTEST) $(TESTS)

test-all: $(INSTALLED_DEV) ## Run all tests, the slow ones too
	$(PYTEST) -m 'slow or not slow' --durations 30 $(TESTS)

check: $(INSTALLED_DEV) ## Lint, format check, types of rsr, direction of imports and its picture
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports
	$(PY) .ci/rooms.py --check

docs: $(INSTALLED) ## Build docs/ as HTML in build/docs
	$(PIP_INSTALL) --quiet --editable '.[docs]'
	$(VENV)/bin/mkdocs build --strict --site-dir build/docs

constraints: $(VENV)/bin/pip ## Write constraints.txt anew: the newest versions that pyproject.toml allows
	@mkdir -p build
	$(PY) -m pip install --dry-run --ignore-installed --quiet --report build/resolved.json \
	    --editable '.[dev,docs]'
	$(PY) .ci/constraints.py build/resolved.json constraints.txt

clean: ## Remove what make created, except the workspace demo/
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './demo/*' -prune -exec rm -rf {} +

# Written last, so that an interrupted install starts again.
$(INSTALLED): pyproject.toml constraints.txt | $(VENV)/bin/pip
	@$(PY) .ci/torch_build.py $(TORCH_INDEX)
	@echo "Installing into $(VENV): a few minutes the first time."
	$(PIP_INSTALL) $(if $(MAKE_TERMERR),,--quiet) --editable .
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	@echo "Installing what the tests and linters need."
	$(PIP_INSTALL) $(if $(MAKE_TERMERR),,--quiet) --editable '.[dev]'
	@# Under pytest warnings are errors, those of others' syntax too, which Python gives when it compiles a module first.
	@$(PY) -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "rsr needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo not there)." >&2; \
	    echo "Name another one: make install PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
