# `make demo` shows boxloss at work, `make test` proves it. Both install what they need.
# Each recipe is a stage with its times, which go where .ci/run or this make says.
SHELL := tools/stages
.SHELLFLAGS = run '$@' bash -euo pipefail -c
ifndef BOXLOSS_STAGES
ifneq ($(filter demo test test-all nightly,$(MAKECMDGOALS)),)
$(shell mkdir -p build && rm -f build/stages)
export BOXLOSS_STAGES := $(CURDIR)/build/stages
endif
endif
.DEFAULT_GOAL := help
.NOTPARALLEL:  # the steps build on each other; ninja keeps the cores busy
unexport MAKEFLAGS  # ninja would take -j for a jobserver to join

# --- With which Python, and what is built ---

ifeq ($(origin PYTHON),undefined)
PYTHON := .venv/bin/python
python_name := venv
site := .venv
export PATH := $(CURDIR)/.venv/bin:$(PATH)
else
# Somebody's own Python: nothing is installed for it, and nothing in it is changed.
own_python := yes
python_name := $(subst /,-,$(patsubst /%,%,$(PYTHON)))
site := build/$(python_name)-site
into_site := --target $(site) --upgrade
export PYTHONPATH := $(CURDIR)/$(site)$(if $(PYTHONPATH),:$(PYTHONPATH))
export PATH := $(PATH):$(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("scripts"))')
endif

BACKEND ?= cpu
space := $(subst ,, )
backends := $(strip $(subst ;, ,$(BACKEND)))
backend_name := $(subst $(space),-,$(backends))
backend_list := $(subst $(space),;,$(backends))
# The presets have build/cuda and others of their own, with other options.
build_folder := build/$(if $(filter-out cpu,$(backend_name)),with-)$(backend_name)
# Programs of one thread each, so as many at a time as there are processors.
export CTEST_PARALLEL_LEVEL := $(shell nproc)
# CMake's default is c++, make's and pip's is g++: to ccache two compilers.
ifeq ($(origin CXX),default)
export CXX := c++
endif
# The package and the C++ tests both build the library: what one has compiled, the other takes. Without root, it is
# compiled twice.
export CCACHE_DIR ?= $(CURDIR)/build/ccache
export CCACHE_BASEDIR ?= /
with_ccache = CMAKE_CXX_COMPILER_LAUNCHER="$${CMAKE_CXX_COMPILER_LAUNCHER-$$(command -v ccache)}"
# Of the wheel: another processor's has a cross compiler, and no GPU.
own_arch := $(shell uname -m)
ARCH ?= $(own_arch)

# As torch calls it: a GPU of either make is cuda.
device := $(if $(filter cuda hip,$(backends)),cuda,cpu)

# No isolation: the library must be built against the torch that will load it.
pip_install = $(PYTHON) -m pip install --no-build-isolation --no-deps

# What the goals need: parts of tools/install_system_packages, and sections of requirements-dev.txt.
goals := $(MAKECMDGOALS) \
  $(if $(filter nightly,$(MAKECMDGOALS)),lint test-all test-toolchains test-wheel test-peers test-older-peers test-docs)
needed_for = $(if $(filter $(1),$(goals)),$(2))
built_goals := $(filter-out docs test-docs lint format,$(goals))
# The others have an environment of their own.
own_goals := $(filter-out test-peers test-older-peers,$(built_goals))
system_parts := $(sort $(if $(built_goals),compiler) $(if $(own_python),,venv) \
  $(call needed_for,build test test-all test-core test-tsan test-asan test-asan-torch test-toolchains,catch2) \
  $(if $(own_python),,$(call needed_for,test test-all test-python,headers)) \
  $(call needed_for,wheel test-wheel,$(filter-out $(own_arch),$(ARCH))) \
  $(if $(filter 0,$(shell id -u)),$(call needed_for,demo test test-all,ccache)) \
  $(call needed_for,test-peers test-older-peers,venv opencv) \
  $(call needed_for,test-docs,chromium))
sections := $(if $(own_goals),build) \
  $(call needed_for,demo test test-all test-python,demo) \
  $(call needed_for,test test-all test-asan-torch test-python,test) \
  $(call needed_for,wheel test-wheel,wheel) \
  $(call needed_for,demo lint test test-all test-python,results) \
  $(call needed_for,lint format,lint) \
  $(call needed_for,docs test-docs,docs) $(call needed_for,test-docs,test browser)

# Where apt has no Catch2 3, the tests that need it are skipped.
has_catch2 := tools/install_system_packages --has catch2
with_catch2 = if $(has_catch2); then $(1); else echo 'SKIPPED: $@: there is no Catch2 3 here'; fi
tests_option := -DBOXLOSS_TESTS=$$($(has_catch2) && echo ON || echo OFF)
# A third of what the C++ tests would take.
gpu_on_host = -DBOXLOSS_GPU_ON_HOST=$(if $(NIGHTLY)$(CI),ON,OFF)

folders := $(wildcard core backends bindings tests examples benchmarks docs cmake)
sources = $(shell find CMakeLists.txt pyproject.toml core backends bindings cmake -not -path '*__pycache__*')
cpp_files = $(shell find $(folders) -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh')
other_files = $(shell find $(folders) -name '*.py' -o -name '*.cmake') $(filter-out %/__pycache__,$(wildcard tools/*)) .ci/run

# Somebody's own Python may have brought another boxloss.
peers_python := env -u PYTHONPATH .venv-peers/bin/python
offline := YOLO_OFFLINE=true YOLO_CONFIG_DIR="$(CURDIR)/build"

# --- Targets ---

.PHONY: help demo test test-all nightly test-core test-tsan test-asan test-asan-torch test-python test-toolchains \
  test-wheel test-peers test-older-peers test-docs checked ready build develop package wheel docs lint format clean

help: ## this list
	@echo 'make TARGET [BACKEND="cuda;kokkos"] [PYTHON=python3]'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile
	@echo 'BACKEND: what to build beside cpu. PYTHON: your own Python, with all that is needed already in it.'

demo: package ## train a small face detector, and time this loss and the usual ones in every step
	mkdir -p benchmarks/out
	$(PYTHON) -m benchmarks face_detector --device $(device) --json benchmarks/out/face_detector.json --pictures benchmarks/out
	@tools/stages table

test: test-core test-python ## the C++ and the Python tests, but for those that take long
	@echo 'SKIPPED: what takes long, the GPU kernels on the host, and sanitizers (make test-all); other compilers, the wheel, JAX, the detectors, the site (make nightly)'
	@tools/stages table

test-all: export NIGHTLY := yes
test-all: test-core test-tsan test-asan test-asan-torch test-python ## all of them, and with sanitizers
	@tools/stages table

nightly: export NIGHTLY := yes
nightly: lint test-all test-toolchains test-wheel test-peers test-older-peers test-docs ## all that there is; .ci/run takes a part of it
	@tools/stages table

# With NIGHTLY, all of it. Otherwise each says what it leaves.
test-core: build ## the C++ tests
	$(call with_catch2,ctest --test-dir $(build_folder) --output-on-failure $(if $(NIGHTLY),,-LE long))

test-tsan: ready ## several callers of cpu/native at once, under ThreadSanitizer
	$(call with_catch2,cmake --preset dev-tsan && cmake --build --preset dev-tsan && ctest --preset dev-tsan)

# The kernels for GPUs, on the host, take as long as all else.
test-asan: ready ## the C++ tests on the CPU under AddressSanitizer and UndefinedBehaviorSanitizer
	$(call with_catch2,cmake --preset dev-asan && \
	  cmake --build --preset dev-asan $(if $(NIGHTLY),,--target boxloss_core_tests boxloss_conformance boxloss_callers) && \
	  ctest --preset dev-asan $(if $(NIGHTLY),,-R '^(core|conformance|callers)\.' -LE long))

# Each compiler has its own: g++, and clang as Debian has it.
asan_library = $(if $(findstring clang,$(shell $(CXX) --version)),libclang_rt.asan-$(shell uname -m).so,libasan.so)

# Python itself is not built with the sanitizer, so its library comes first, and libstdc++ with it,
# or else exceptions could not be followed. Python's own leaks are not ours. The build is for the CPU.
test-asan-torch: ready ## the Python tests marked asan, likewise
	cmake --preset dev-asan -DBOXLOSS_TORCH=ON $(tests_option) -DPython3_EXECUTABLE="$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	cmake --build --preset dev-asan --target boxloss_torch
	for component in Unspecified python; do \
	  cmake --install build/dev-asan --component $$component --prefix build/dev-asan/site/boxloss; \
	done
	LD_PRELOAD="$$($(CXX) -print-file-name=$(asan_library)) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 CUDA_VISIBLE_DEVICES= \
	PYTHONPATH="$(CURDIR)/build/dev-asan/site:$${PYTHONPATH:-}" \
	$(PYTHON) -m pytest -m asan --capture=no tests/torch

test-toolchains: ready ## CUDA, Kokkos, HIP and aarch64 with compilers of their own, where those can be had; TOOLCHAINS="cuda sid aarch64" for some
	tools/test_toolchains $(TOOLCHAINS)

wheel: ready ## the wheel for all torches and the sdist, in dist/; TORCHES="2.13 newest" for some, ARCH=aarch64 for the CPU there
	$(PYTHON) tools/build_wheel --arch $(ARCH) $(if $(TORCHES),--torches $(TORCHES))

# With fewer GPUs but at night, and without nvcc with none.
test-wheel: ready ## a wheel for the oldest and the newest torch, TORCHES="..." for others, tested as its users have it
	$(PYTHON) tools/build_wheel --arch $(ARCH) --torches $(or $(TORCHES),oldest newest) \
	  $(if $(shell command -v $${CUDACXX:-nvcc}),$(if $(NIGHTLY),,--architectures 90),--backend cpu)
	$(if $(shell command -v $${CUDACXX:-nvcc}),,@echo 'SKIPPED: cuda in the wheel: nvcc is not installed')
	PYTHON=$(PYTHON) tools/test_wheel dist/*_$(ARCH).whl

# An environment of its own, of some 6 GB, and the sdist built in it, from what is there alone: the newest torch, who wants
# it, and JAX.
test-peers: .venv-peers/.boxloss ## the examples and adapters, each beside the detector that it is for, and JAX
	$(offline) OMP_NUM_THREADS=1 $(peers_python) -m pytest --numprocesses 2 --dist loadfile $(if $(NIGHTLY),,-m 'not long') tests/peers tests/jax

test-older-peers: .venv-peers/.boxloss ## use_boxloss in older versions of transformers and Ultralytics
	$(offline) tools/test_older_peers .venv-peers/bin/python

# What the tests of a file build, a process builds once, since it takes whole files.
test-python: package ## the Python tests
	$(PYTHON) -m pytest --numprocesses 2 --dist loadfile $(if $(NIGHTLY),,-m 'not long')  # each has torch's threads, and its share of the GPU

build: ready ## the C++ library and its tests, in build/
	$(with_ccache) cmake --preset cpu $(tests_option) $(gpu_on_host) -B $(build_folder) -DBACKEND='$(backend_list)' -DBUILD_SHARED_LIBS=ON
	cmake --build $(build_folder)

# A folder of links to the sources and the build, and a .pth file that adds this folder to .venv's path. The links are
# not in site-packages, where pip would write through them and delete sources. An installed copy would be found first,
# so it is removed.
develop: ready ## the package for work on it: edits of Python count at once, of C++ after `cmake --build build/develop`
	$(with_ccache) cmake --preset develop -DBACKEND='$(backend_list)' \
	  -DPython3_EXECUTABLE="$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	cmake --build build/develop
	rm -rf build/develop/site
	for component in Unspecified python; do \
	  CMAKE_INSTALL_MODE=ABS_SYMLINK cmake --install build/develop --component $$component \
	    --prefix build/develop/site/boxloss >/dev/null; \
	done
ifdef own_python
	@echo 'Use it with PYTHONPATH=$(CURDIR)/build/develop/site'
else
	rm -f .venv/.boxloss-*
	$(PYTHON) -m pip uninstall --yes boxloss
	echo '$(CURDIR)/build/develop/site' >"$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/boxloss-develop.pth"
endif

package: $(site)/.boxloss-$(backend_name) ## the Python package, in .venv or for your own PYTHON in build/

docs: ready ## the documentation site, in build/site
	$(PYTHON) tools/lay_out_site
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict
	@echo 'To read it: $(PYTHON) -m http.server --directory build/site'

test-docs: docs ## the site in headless Chromium: narrow and wide, light and dark, and its search
	$(PYTHON) -m pytest tests/docs

lint: ready ## formats, lint rules, types, licence lines, the places of seeded errors, the tables of pages
	@echo clang-format --dry-run
	@clang-format --dry-run -Werror $(cpp_files)
	ruff check
	ruff format --check
	mypy
	@echo tools/check_spdx
	@tools/check_spdx $(cpp_files) $(other_files)
	tools/seed_errors --list >/dev/null
	$(PYTHON) tools/fill_pages --check

format: ready ## rewrite the sources as lint wants them
	@clang-format -i $(cpp_files)
	ruff check --fix
	ruff format

clean: ## remove build/, keep .venv and .venv-peers
	rm -rf build

# --- What is made once ---

# All that takes root, and all that somebody's own Python lacks, before anything is built.
checked:
	@tools/install_system_packages $(system_parts)
	@$(if $(own_python),$(if $(strip $(sections)),$(PYTHON) tools/requirements check requirements-dev.txt $(sections)))

ready: checked
ifndef own_python
	@[ -e .venv/ready ] || python3 -m venv .venv
	@.venv/bin/python tools/requirements install .venv/ready requirements-dev.txt $(device) $(sections)
endif

.venv-peers/ready: requirements-peers.txt | checked
	python3 -m venv .venv-peers
	$(peers_python) tools/requirements install $@ requirements-peers.txt cuda

.venv-peers/.boxloss: $(sources) .venv-peers/ready
	rm -rf build/sdist
	$(peers_python) -m build --sdist --no-isolation --outdir build/sdist
	$(peers_python) -m pip install --no-index --no-build-isolation --no-deps --force-reinstall \
	  --config-settings=build-dir=build/venv-peers build/sdist/*
	touch $@

# A site holds one build at a time: the mark says of which backends.
$(site)/.boxloss-$(backend_name): $(sources) requirements-dev.txt | ready
	rm -f $(site)/.boxloss-* $(site)/lib/python*/site-packages/boxloss-develop.pth
	$(with_ccache) $(pip_install) $(into_site) --config-settings=build-dir=build/$(python_name)-$(backend_name) \
	  --config-settings='cmake.define.BACKEND=$(backend_list)' .
	touch $@
