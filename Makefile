# SPDX-License-Identifier: Apache-2.0
# The usual things to do with maquette. `make` builds; the program is build/maquette.

BUILD   ?= build
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
PROGRAM  = $(BUILD)/maquette
# Of Meson, for the build: OPTIONS=-Dwerror=true
OPTIONS ?=
EXAMPLE ?= examples/llama3-405b-16k.yaml
FUZZ_S  ?= 60

SOURCES  = $(shell find src include shim tests bench -name '*.[ch]' 2>/dev/null | sort)

SHARED  ?= ../shared

.PHONY: build run test bench fit lint format build-asan asan build-tsan tsan fuzz clean deps deps-all golden accuracy
build: deps
	@tools/build.sh $(BUILD) $(JOBS) -Dpython=auto $(OPTIONS)

deps:
	@tools/install-deps.sh build

deps-all:
	@tools/install-deps.sh all

# The program alone: half of what `make build` builds.
run: deps
	@TARGETS=maquette tools/build.sh $(BUILD) $(JOBS) -Dpython=auto $(OPTIONS)
	$(PROGRAM) train $(EXAMPLE)

# Closes with one line, `N passed, N failed`, over all test cases.
test: build
	@tools/test.sh $(BUILD)

golden: build
	MAQ=$(PROGRAM) tests/run_golden.py

# The interval of a prediction, from what this build is off by; to be run when predictions have changed.
.PHONY: fit-error fit-serve-error fit-serve-power
fit-error: build
	@tools/fit-train-error $(PROGRAM) $(SHARED)/data/measured/training.csv >$(BUILD)/train_error_fit.h
	@mv $(BUILD)/train_error_fit.h src/train/uncertainty_fit.h

# The same of serving's latencies; minutes.
fit-serve-error: build
	@tools/fit-serve-error $(PROGRAM) $(SHARED)/data/measured/inference.csv >$(BUILD)/serve_error_fit.h
	@mv $(BUILD)/serve_error_fit.h src/serve/engine/uncertainty_fit.h

# What a GPU draws while it serves; half a minute.
fit-serve-power: build
	@tools/fit-serve-power $(PROGRAM) $(SHARED)/data/measured/inference.csv >$(BUILD)/power_fit.h
	@mv $(BUILD)/power_fit.h src/serve/engine/power_fit.h

# docs/accuracy.md, its plots and the figures of README.md, from the measurements in SHARED.
accuracy: build
	@tools/accuracy $(BUILD) $(SHARED)

# docs/pictures, from what the program says; a test compares them.
.PHONY: pictures
pictures: build
	@tools/pages/pictures.py $(PROGRAM)

bench: build
	@if [ -x bench/run ]; then bench/run $(PROGRAM); else meson test -C $(BUILD) --benchmark --print-errorlogs; fi

# Refits data/fitted to public kernel tables; KERNELS is a folder in aiconfigurator's layout. Takes minutes.
KERNELS ?= ../shared/data/kernels/aiconfigurator_kernels
fit: build
	@$(BUILD)/tools/fit/fit-kernels data/fitted "ai-dynamo/aiconfigurator 095f58a, Apache-2.0" \
	    $$(find $(KERNELS) -name '*.csv.gz' ! -name 'comm__*' | LC_ALL=C sort)

lint: deps-all
	@tools/lint.sh

# clang-tidy and cppcheck over every file as `.ci/run` goes over what changes; writes down what was searched (tools/searched.py).
.PHONY: searched
searched: build-asan
	@LINT_BUILD=build-asan TIDY_NODES=20000 tools/lint.sh tidy cppcheck && tools/searched.py tools/searched --write

format:
	@clang-format-14 -i $(SOURCES)

# For the lines of a sanitizer's report; a sixth of the time that such a build takes. Empty: what UBSan finds is a trap, whose stack ASan
# prints, without the text of each check, which is a third of the library's data.
REPORT_LINES ?= -gline-tables-only
UNDEFINED_REPORTS := $(or $(REPORT_LINES),-fsanitize-trap=undefined)

# Every test holds the instrumented library: the linker is lld, which takes half the time over it.
build-asan: deps-all
	@CC=clang CC_LD=lld tools/build.sh build-asan $(JOBS) -Dwerror=true -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=custom \
	    -Doptimization=1 -Ddebug=false -Dc_args=$(UNDEFINED_REPORTS)

asan: build-asan
	@tools/test.sh build-asan

# By gcc, which takes two thirds of clang's time over it; what is built is what the tests with threads need.
build-tsan: deps-all
	@TARGETS="maquette $$(python3 tests/list_tests.py tests | awk '$$1 == "unit" && $$3 == "threads" { print "tests/" $$2 }' | xargs)" \
	    CC=gcc CC_LD=lld tools/build.sh build-tsan $(JOBS) -Db_sanitize=thread -Db_lundef=false -Dbuildtype=custom -Doptimization=1 \
	    -Ddebug=false $(if $(REPORT_LINES),-Dc_args=-g1)

tsan: build-tsan
	@tools/test.sh build-tsan --suite threads

# Every fuzz target for FUZZ_S seconds; new inputs stay in build-fuzz/corpus, a crash is left where the message says.
fuzz: deps-all
	@CC=clang CC_LD=lld tools/build.sh build-fuzz $(JOBS) -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false \
	    -Dbuildtype=custom -Doptimization=1 -Ddebug=false -Dc_args=$(REPORT_LINES)
	@set -e; for target in $$(find build-fuzz/tests -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x | sort); do \
	    name=$${target##*/fuzz_}; mkdir -p build-fuzz/corpus/$$name tests/fuzz/corpus/$$name; \
	    echo "fuzzing $$name for $(FUZZ_S) s"; \
	    $$target -max_total_time=$(FUZZ_S) -timeout=10 -rss_limit_mb=2048 -artifact_prefix=build-fuzz/$$name- \
	        build-fuzz/corpus/$$name tests/fuzz/corpus/$$name; done

# Programs of other people on the zero-GPU device: PyTorch's stock CUDA wheel and Megatron-Core, installed by their names (about
# 3 GB, once); llm.c and nccl-tests where LLMC and NCCL_TESTS are folders in which they were built.
.PHONY: test-programs
test-programs: build
	@MAQ_BUILD_ROOT=$(BUILD) LLMC=$(LLMC) NCCL_TESTS=$(NCCL_TESTS) tests/test-programs/run.py

# Peaks of memory of some 250 small training programs on the zero-GPU device, and what `maquette train` says of the same jobs. MAQ_MEMORY_PYTHON
# is an interpreter that has torch, transformers, accelerate, peft and deepspeed, or torch and transformer-engine for the script of a checkout of
# Megatron-LM, MAQ_MEGATRON_LM; without them the figures that are kept are compared.
# TRUTH=--again runs them all anew; TRUTH=--jobs has a line for each.
.PHONY: memory-truth
memory-truth: build
	@tests/memory-truth/run.py --build $(BUILD) $(TRUTH)

# What vLLM's own scheduler decides on RECORDINGS random lists of requests, and whether maquette's decides the same. Installs vllm by its
# name (about 10 GB, once) unless MAQ_VLLM_PYTHON is an interpreter that has it.
RECORDINGS ?= 50
.PHONY: vllm-truth
vllm-truth: build
	@tools/vllm-truth/run.py --build $(BUILD) --count $(RECORDINGS)

# The same of SGLang's scheduler (about 8 GB, once), unless MAQ_SGLANG_PYTHON is an interpreter that has it.
.PHONY: sglang-truth
sglang-truth: build
	@tools/sglang-truth/run.py --build $(BUILD) --count $(RECORDINGS)

# Parameters of small models of random sizes, of every family, as the transformers library counts them, and whether maquette counts the same.
# MAQ_TRANSFORMERS_PYTHON is an interpreter that has torch and transformers; skipped without one. TRUTH=--write renews the test's table.
MODELS ?= 6
.PHONY: model-truth
model-truth: build
	@tools/model-truth/run.py --build $(BUILD) --count $(MODELS) $(TRUTH)
	@tools/model-truth/vision.py --build $(BUILD) --count $(MODELS)

# What `serve plan` recommends beside NVIDIA's AIConfigurator, for the models, GPUs and lengths of measured runs (docs/serve-plan.md). Installs
# aiconfigurator by its name unless MAQ_AICONFIGURATOR_PYTHON is an interpreter that has it. Half an hour.
.PHONY: beside-aiconfigurator
beside-aiconfigurator: build
	@$(PROGRAM) validate serve $(SHARED)/data/measured/inference.csv --json >$(BUILD)/served.json
	@tools/beside-aiconfigurator/run.py --build $(BUILD) --rows $(BUILD)/served.json

# What is handed out (docs/packages.md). Each looks at what it made and says how large it is.
.PHONY: deps-packaging
deps-packaging: deps
	@tools/install-deps.sh packaging

# The program as one file that needs no other: build-static/maquette.
.PHONY: static
static: deps
	@JOBS=$(JOBS) tools/packages/static.sh

# Debian packages, and what lintian says of them: build-deb.
.PHONY: deb
deb: deps-packaging
	@tools/packages/deb.sh

# docs/ as a site that loads nothing from a network: build-site/site.
.PHONY: site
site: build deps-packaging
	@tools/site/build.py $(PROGRAM) build-site

# What the program of BUILD is made of, as CycloneDX: BUILD/maquette.cdx.json. VALIDATE=--validate: by cyclonedx-python-lib, where python3 has it.
.PHONY: sbom
sbom: build
	@tools/packages/sbom.py $(BUILD) --out $(BUILD)/maquette.cdx.json $(VALIDATE) && echo $(BUILD)/maquette.cdx.json

# The interface of libmaquette.so against that of the last release, and whether the version may stay (CONTRIBUTING.md).
.PHONY: abi
abi: deps-packaging
	@JOBS=$(JOBS) tools/packages/abi.sh

# A wheel that other machines can install: build-wheel.
.PHONY: wheel
wheel: deps
	@tools/packages/wheel.sh

# Program, wheel, site, static and deb twice each, in two folders: the same bytes? Half an hour, since nothing is kept from another build.
.PHONY: reproducible
reproducible: deps-packaging
	@tools/packages/reproducible.sh

clean:
	rm -rf build build-asan build-tsan build-fuzz build-ci-gcc build-ci-clang build-static build-deb build-wheel build-abi build-site
