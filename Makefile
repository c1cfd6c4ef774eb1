# SPDX-License-Identifier: Apache-2.0
# GNU make drives CMake: `make` builds build/snug and build/libsnug.so, `make help` lists the rest.

PREFIX ?= /usr/local
DESTDIR ?=
SECONDS ?= 60
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CMAKE_FLAGS ?=
ifneq ($(origin CC),default)
CMAKE_FLAGS += -DCMAKE_C_COMPILER=$(CC)
endif

CONFIGURE = cmake -S . -G Ninja $(CMAKE_FLAGS)
NINJA = ninja -j $(JOBS)

.PHONY: all help deps deps-test check check-quick check-asan check-tsan check-nightly demo \
	check-onednn3 bench-peers fmt fmt-check install fuzz clean release-tests asan-tests tsan-tests \
	clang-tests

all: deps build/build.ninja
	@$(NINJA) -C build snug snug_cli pages

help:
	@echo 'make               build/snug and build/libsnug.so'
	@echo 'make demo          trains on a small data set, into runs/demo/'
	@echo 'make check         every test: release, address, thread, oneDNN 3, and the format'
	@echo 'make check-quick   the quick tests of the release flavour'
	@echo 'make check-asan    the address and undefined-behaviour flavour; check-tsan: threads'
	@echo 'make check-onednn3 the kernels against oneDNN 3, from its PyPI wheels'
	@echo 'make check-nightly longer sets, clang as well, and the fuzzers'
	@echo 'make fuzz          each fuzzer for SECONDS=60'
	@echo 'make bench-peers   times snug against TensorFlow and PyTorch'
	@echo 'make install       PREFIX=/usr/local DESTDIR='
	@echo 'make deps          the packages that the build needs; deps-test: that the tests need'
	@echo 'make fmt           formats every source file; fmt-check says which are not'
	@echo 'make clean         removes the build folders'

deps:
	@tools/install-deps.sh core
deps-test:
	@tools/install-deps.sh core test

build/build.ninja:
	@$(CONFIGURE) -B build -DCMAKE_BUILD_TYPE=Release -DSNUG_TESTS=OFF

# The flavours. Each builds the programs that its own check runs.
ASAN_TESTS = 'unit/*' 'format/*' 'data/*' 'diagnose/*' 'gpus/*' 'fuzz/*' 'cli/train' 'cli/plan' \
	'cli/data' 'cli/help' 'cli/ps'
TSAN_TESTS = 'unit/base_thread' 'unit/base_ledger' 'unit/data_*' 'data/*'
tests_of = $$(tools/run-tests.sh --targets $(1) $(2))

release-tests: deps-test
	@$(CONFIGURE) -B build -DCMAKE_BUILD_TYPE=Release -DSNUG_TESTS=ON >/dev/null
	@$(NINJA) -C build
asan-tests: deps-test
	@$(CONFIGURE) -B build-asan -DCMAKE_BUILD_TYPE=Debug -DSNUG_SANITIZE=address >/dev/null
	@$(NINJA) -C build-asan $(call tests_of,build-asan,$(ASAN_TESTS))
tsan-tests: deps-test
	@$(CONFIGURE) -B build-tsan -DCMAKE_BUILD_TYPE=Debug -DSNUG_SANITIZE=thread >/dev/null
	@$(NINJA) -C build-tsan $(call tests_of,build-tsan,$(TSAN_TESTS))
clang-tests: deps-test
	@cmake -S . -G Ninja -B build-clang -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang >/dev/null
	@$(NINJA) -C build-clang

check:
	@tools/check.sh release asan tsan onednn3 fmt
check-quick: release-tests
	@tools/run-tests.sh --quick build
check-asan: asan-tests
	@tools/run-tests.sh build-asan $(ASAN_TESTS)
check-tsan: tsan-tests
	@tools/run-tests.sh build-tsan $(TSAN_TESTS)
check-onednn3: deps-test
	@JOBS=$(JOBS) tools/onednn3.sh
check-nightly:
	@SNUG_NIGHTLY=1 tools/check.sh release asan tsan onednn3 clang fmt
	@python3 tests/nightly/budgets.py --snug build/snug --big
	@python3 tests/nightly/options.py --snug build-asan/snug --runs 3000
	@$(MAKE) --no-print-directory fuzz

demo: all
	@tools/install-deps.sh demo
	@tools/demo.sh

bench-peers: all
	@bench/peers.sh

fmt:
	@tools/format.sh
fmt-check: deps-test
	@tools/format.sh --check

install: all
	@DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

fuzz: deps-test
	@cmake -S . -G Ninja -B build-fuzz -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang \
	    -DSNUG_SANITIZE=fuzzer -DSNUG_TESTS=OFF >/dev/null
	@$(NINJA) -C build-fuzz fuzzers
	@tools/fuzz.sh build-fuzz $(SECONDS)

clean:
	@rm -rf build build-asan build-tsan build-clang build-fuzz build-onednn3
