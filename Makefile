# For people: `make` builds, `make help` lists the rest. All of it is CMake underneath, and settings come from Makefile.config.
# On make's command line: any switch of Makefile.config.example, CMAKE_ARGS, BUILD (default: build), JOBS, INSTALL_DEPS=0.

BUILD ?= build
PREFIX ?= /usr/local
INSTALL_DEPS ?= 1
JOBS ?=
CMAKE_ARGS ?=

SWITCHES := CPU_ONLY USE_CUDNN USE_NCCL USE_OPENCV USE_LMDB USE_LEVELDB USE_HDF5 ALLOW_LMDB_NOLOCK CUDA_DIR \
    CUDA_ARCH BLAS DEBUG PYTHON CUSTOM_CXX INCLUDE_DIRS LIBRARY_DIRS
given = $(strip $(foreach s,$(SWITCHES),$(if $(findstring command,$(origin $(s))),$(s)=$($(s));)))
sources = $(shell find src tools tests benchmarks -name '*.h' -o -name '*.cpp' -o -name '*.cu')

.PHONY: all deps configure demo test bench install format format-check tidy clean help

all: configure
	@cmake --build $(BUILD) $(if $(JOBS),-j $(JOBS))

deps:
	@if [ "$(INSTALL_DEPS)" != 0 ] && command -v dpkg-query >/dev/null; then scripts/install_deps; fi

configure: deps
	@cmake -S . -B $(BUILD) -G Ninja "-DCREMA_MAKE_SWITCHES=$(given)" $(CMAKE_ARGS)

demo: all
	@BUILD=$(BUILD) scripts/demo

test: all
	@ctest --test-dir $(BUILD) --output-on-failure -j $(or $(JOBS),$(shell nproc))

bench: all
	@benchmarks/run $(BUILD)/bin

install: all
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

format:
	@clang-format -i $(sources)

format-check:
	@clang-format --dry-run -Werror $(sources)

# clang cannot read the compiler's precompiled headers, so the commands that it gets have none.
tidy: all
	@mkdir -p $(BUILD)/tidy
	@sed -E 's/-include [^ ]*cmake_pch[^ ]*//g; s/-Winvalid-pch//g; s/-fpch-preprocess//g; s/-Werror //g' \
	  $(BUILD)/compile_commands.json >$(BUILD)/tidy/compile_commands.json
	@run-clang-tidy -quiet -p $(BUILD)/tidy '^$(CURDIR)/(src|tools|tests|benchmarks)/.*$(TIDY)'

# Keeps the databases and snapshots that the scripts put there.
clean:
	@if [ -d $(BUILD) ]; then \
	  find $(BUILD) -mindepth 1 -maxdepth 1 ! -name demo ! -name mnist ! -name cifar10 -exec rm -rf {} +; fi

help:
	@echo 'make               install missing packages, configure, build into $(BUILD)/bin'
	@echo 'make demo          train, test, resume and fine-tune a small network, with explanations'
	@echo 'make test          build and run every test'
	@echo 'make bench         measure speed'
	@echo 'make install       install under PREFIX ($(PREFIX))'
	@echo 'make format        format the sources; format-check only looks; tidy runs clang-tidy (TIDY=solver/: on files whose path holds this)'
	@echo 'make clean         remove what was built, but not data and snapshots in $(BUILD)'
