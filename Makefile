# Everything starts from a fresh clone with Python >= 3.11, cargo and g++.
# Stamps in .venv remember what is up to date; the list of packages is in pyproject.toml.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTENSION := python/dlfield/_core.abi3.so
CRATE_FEATURES := cuda,arrow,ndarray
ALL_FEATURES := python,$(CRATE_FEATURES)

# One interpreter and one environment for cargo, maturin and uv, so that no build undoes another.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
unexport CONDA_PREFIX
# Stencils are compiled once and kept here.
export GT_CACHE_ROOT := $(CURDIR)/.cache

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check bench wheel clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST)

demo: $(EXTENSION) $(VENV)/.stamp-demo ## one field through NumPy, torch, JAX, xarray, Arrow and a stencil
	$(BIN)/python examples/quickstart.py

test: $(EXTENSION) $(VENV)/.stamp-test ## Rust tests, doc tests, pytest
	cargo test --features $(CRATE_FEATURES)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/python interop_tests

check: $(EXTENSION) $(VENV)/.stamp-dev ## formatting, lints, documentation, types
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --all-targets --features $(ALL_FEATURES) -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items --features $(ALL_FEATURES)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict python/dlfield
	MYPYPATH=python $(BIN)/python -m mypy.stubtest --allowlist stubtest-allowed.txt dlfield._core

bench: $(EXTENSION) $(VENV)/.stamp-test ## the exchange times beside their peers
	$(BIN)/python benches/exchange.py

wheel: $(VENV)/.stamp-build ## one abi3 wheel in dist/
	$(BIN)/maturin build --release --out dist

clean: ## remove all that make has made
	rm -rf $(VENV) target dist .cache .hypothesis .pytest_cache .mypy_cache .ruff_cache $(EXTENSION)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.stamp-venv:
	$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet uv
	touch $@

# .stamp-build, .stamp-demo, .stamp-test, .stamp-dev: one per dependency group.
$(VENV)/.stamp-%: pyproject.toml $(VENV)/.stamp-venv
	$(BIN)/uv pip install --group $*
	touch $@

# An editable install: changed Python files count at once, only Rust is rebuilt.
$(EXTENSION): $(VENV)/.stamp-build $(shell find src -type f) $(wildcard Cargo.toml Cargo.lock)
	$(BIN)/maturin develop --release --uv
	touch $@
