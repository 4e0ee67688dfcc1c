# `make demo` shows boxloss at work, `make test` proves it. Both install what they need.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:  # the steps build on each other; ninja keeps the cores busy
unexport MAKEFLAGS  # ninja would take -j for a jobserver to join

# --- With which Python, and what is built ---

ifeq ($(origin PYTHON),undefined)
PYTHON := .venv/bin/python
python_name := venv
site := .venv
venv := .venv/ready
get_catch2 := tools/install_system_packages catch2
get_headers := tools/install_system_packages headers
export PATH := $(CURDIR)/.venv/bin:$(PATH)
else
# Somebody's own Python: nothing is installed for it, and nothing in it is changed.
python_name := $(notdir $(PYTHON))
site := build/$(python_name)-site
into_site := --target $(site) --upgrade
export PYTHONPATH := $(CURDIR)/$(site)$(if $(PYTHONPATH),:$(PYTHONPATH))
endif

BACKEND ?= cpu
space := $(subst ,, )
backends := $(strip $(subst ;, ,$(BACKEND)))
backend_name := $(subst $(space),-,$(backends))
backend_list := $(subst $(space),;,$(backends))
# Programs of one thread each, so as many at a time as there are processors.
export CTEST_PARALLEL_LEVEL := $(shell nproc)
# As torch calls it: a GPU of either make is cuda.
device := $(if $(filter cuda hip,$(backends)),cuda,cpu)
SCALE ?= small

# No isolation: the library must be built against the torch that will load it.
pip_install = $(PYTHON) -m pip install --no-build-isolation --no-deps

folders := $(wildcard core backends bindings tests examples benchmarks docs cmake)
sources = $(shell find CMakeLists.txt pyproject.toml core backends bindings cmake -not -path '*__pycache__*')
cpp_files = $(shell find $(folders) -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh')
other_files = $(shell find $(folders) -name '*.py' -o -name '*.cmake') $(wildcard tools/*) .ci/run

# Somebody's own Python may have brought another boxloss.
peers_python := env -u PYTHONPATH .venv-peers/bin/python

# --- Targets ---

.PHONY: help demo test test-core test-tsan test-asan test-asan-torch test-python test-toolchains test-wheel test-peers \
  build build-asan package wheel bench lint format clean

help: ## this list
	@echo 'make TARGET [BACKEND="cuda;kokkos"] [PYTHON=python3]'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile
	@echo 'BACKEND: what to build beside cpu. PYTHON: your own Python, with all that is needed already in it.'

demo: package ## train a small face detector with this loss and with the usual ones
	mkdir -p benchmarks/out
	$(PYTHON) -m benchmarks.face_detector --scale small --device $(device) \
	  --plot benchmarks/out/face_detector.svg

test: test-core test-tsan test-asan test-asan-torch test-python ## all the tests but test-toolchains, test-wheel and test-peers

test-core: build ## the C++ tests
	ctest --test-dir build/$(backend_name) --output-on-failure

test-tsan: $(venv) ## several callers of cpu/native at once, under ThreadSanitizer
	$(get_catch2)
	cmake --preset dev-tsan
	cmake --build --preset dev-tsan
	ctest --preset dev-tsan

test-asan: build-asan ## the C++ tests on the CPU under AddressSanitizer and UndefinedBehaviorSanitizer
	ctest --preset dev-asan

# Python itself is not built with the sanitizer, so its library comes first, and libstdc++ with it,
# or else exceptions could not be followed. Python's own leaks are not ours. The build is for the CPU.
test-asan-torch: build-asan ## the Python tests marked asan, likewise
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 CUDA_VISIBLE_DEVICES= \
	PYTHONPATH="$(CURDIR)/build/dev-asan/site:$${PYTHONPATH:-}" \
	$(PYTHON) -m pytest -m asan --capture=no tests/torch

build-asan: $(venv)
	$(get_catch2)
	cmake --preset dev-asan -DPython3_EXECUTABLE="$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	cmake --build --preset dev-asan
	for component in Unspecified python; do \
	  cmake --install build/dev-asan --component $$component --prefix build/dev-asan/site/boxloss; \
	done

test-toolchains: $(venv) ## CUDA, Kokkos, HIP and aarch64 with compilers of their own, where those can be had
	$(get_catch2)
	PYTHON=$(PYTHON) tools/test_toolchains

wheel: $(venv) ## the wheel for all torches and the sdist, in dist/; TORCHES="2.13 newest" for some
	$(PYTHON) tools/build_wheel $(if $(TORCHES),--torches $(TORCHES))

# With fewer GPUs, and without nvcc with none.
test-wheel: $(venv) ## a wheel for the oldest and the newest torch, TORCHES="..." for others, tested as its users have it
	$(PYTHON) tools/build_wheel --torches $(or $(TORCHES),oldest newest) \
	  $(if $(shell command -v $${CUDACXX:-nvcc}),--architectures 90,--backend cpu)
	$(if $(shell command -v $${CUDACXX:-nvcc}),,@echo 'SKIPPED: cuda in the wheel: nvcc is not installed')
	PYTHON=$(PYTHON) tools/test_wheel dist/*.whl

# An environment of its own, of some 6 GB, and the sdist built in it, from what is there alone: the newest torch, and who wants it.
test-peers: .venv-peers/.boxloss ## the examples and adapters, each beside the detector that it is for
	YOLO_OFFLINE=true YOLO_CONFIG_DIR=$(CURDIR)/build $(peers_python) -m pytest tests/peers

test-python: package ## the Python tests
	$(get_headers)
	$(PYTHON) -m pytest --numprocesses 2  # each has torch's threads, and its share of the GPU

build: $(venv) ## the C++ library and its tests, in build/
	$(get_catch2)
	cmake --preset cpu -B build/$(backend_name) -DBACKEND='$(backend_list)'
	cmake --build build/$(backend_name)

package: $(site)/.boxloss-$(backend_name) ## the Python package, in .venv or for your own PYTHON in build/

bench: package ## the demo, written down in benchmarks/out; SCALE=seed is the article's, for a large GPU
	mkdir -p benchmarks/out
	$(PYTHON) -m benchmarks.face_detector --scale $(SCALE) --device $(device) \
	  --json benchmarks/out/face_detector.json --plot benchmarks/out/face_detector.svg

lint: $(venv) ## formats, lint rules, types, licence lines, and that seeded errors find their places
	@echo clang-format --dry-run
	@clang-format --dry-run -Werror $(cpp_files)
	ruff check
	ruff format --check
	mypy
	@echo tools/check_spdx
	@tools/check_spdx $(cpp_files) $(other_files)
	tools/seed_errors --list >/dev/null

format: $(venv) ## rewrite the sources as lint wants them
	@clang-format -i $(cpp_files)
	ruff check --fix
	ruff format

clean: ## remove build/, keep .venv and .venv-peers
	rm -rf build

# --- What is made once ---

.venv/ready: requirements-dev.txt
	tools/install_system_packages venv
	python3 -m venv .venv
	.venv/bin/python -m pip install -r requirements-dev.txt
	touch $@

.venv-peers/ready: requirements-peers.txt
	tools/install_system_packages venv
	tools/install_system_packages opencv
	python3 -m venv .venv-peers
	$(peers_python) -m pip install -r requirements-peers.txt
	touch $@

.venv-peers/.boxloss: $(sources) .venv-peers/ready
	rm -rf build/sdist
	$(peers_python) -m build --sdist --no-isolation --outdir build/sdist
	$(peers_python) -m pip install --no-index --no-build-isolation --no-deps --force-reinstall build/sdist/*
	touch $@

# A site holds one build at a time: the mark says of which backends.
$(site)/.boxloss-$(backend_name): $(sources) $(venv)
	rm -f $(site)/.boxloss-*
	$(pip_install) $(into_site) --config-settings=build-dir=build/$(python_name)-$(backend_name) \
	  --config-settings='cmake.define.BACKEND=$(backend_list)' .
	touch $@
