# wstore needs Go 1.26, Python 3.11 and make. `make help` lists what there is.
#
# Caches (the Python environment, the linter) are kept outside the checkout, in
# $WSTORE_CACHE, else $XDG_CACHE_HOME/wstore, else ~/.cache/wstore.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON    ?= python3
FUZZTIME  ?= 10m
FUZZSHORT ?= 5000x

DEMO := build/demo.wst
# Recursive, so that the environment is built only by the targets that use it.
PY       = $(shell $(PYTHON) tools/pyenv)
PY_TORCH = $(shell $(PYTHON) tools/pyenv torch)
PY_BENCH = $(shell $(PYTHON) tools/pyenv bench)
UV      ?= uv
# What is Python.
PYTHONS = python bench examples tools/pyenv tools/wheel-check
# The packages whose tests depend on the word size, the byte order or on other goroutines:
# all but the checks of the source text and of the documentation, which are the same everywhere.
CODE = $(shell go list ./... | grep -v -e /internal/lint -e /internal/doctest -e /tools/)

.PHONY: help build demo test test-go test-python test-wheel test-torch test-all race fuzz fuzz-short cross test-386 lint \
	bench bench-all bench-convert bench-quick bench-go bench-beyond-ram order-quality locks notices docs fmt clean
.DEFAULT_GOAL := help

help: ## List the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build the command line tool, bin/wstore
	go build -trimpath -o bin/wstore ./cmd/wstore

demo: build ## Convert 100 real CSV files, show the windows, verify: a few seconds
	@mkdir -p build
	bin/wstore convert testdata/article-100x470 -o $(DEMO) --ticker Name --force
	@echo
	bin/wstore inspect $(DEMO) --lookback 60 --horizon 1 --inputs features --targets close
	@echo
	@echo "The first windows of 60 rows, and the last:"
	bin/wstore windows $(DEMO) --lookback 60 --horizon 1 --targets close --limit 3
	bin/wstore windows $(DEMO) --lookback 60 --horizon 1 --targets close --json | tail -n 3
	@echo
	bin/wstore verify $(DEMO)

test: test-go test-python ## What to run before each commit: under five minutes

test-go:
	go vet ./...
	go test ./...

# Two programs beside the package: the tool, and the Go side of the comparison of the readers.
test-python: build
	go build -trimpath -o build/differ ./tools/differ
	WSTORE=$(CURDIR)/bin/wstore WSTORE_DIFFER=$(CURDIR)/build/differ PYTHONPATH=$(CURDIR)/python \
		$(or $(PY),$(error no Python environment, see above)) -m pytest python/tests --ignore python/tests/torch

test-torch: build ## The tests of wstore.torch and of the examples; installs torch, about 5 GB, once
	WSTORE=$(CURDIR)/bin/wstore PYTHONPATH=$(CURDIR)/python $(or $(PY_TORCH),$(error no Python environment, see above)) \
		-m pytest python/tests/torch
	cd python && $(PY_TORCH) -m mypy

# In an environment of its own, outside the checkout; pip fetches the build backend, numpy and pyarrow.
test-wheel: ## Install the Python package into a fresh environment; write, open and read a file with it
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(PYTHON) -m venv "$$dir/venv" && \
	WSTORE_REQUIRE_CLI=1 "$$dir"/venv/bin/python -m pip install --quiet --disable-pip-version-check './python[frames]' && \
	cp spec/vectors/base.wst tools/wheel-check "$$dir" && cd "$$dir" && \
	env -u PYTHONPATH venv/bin/python wheel-check base.wst

# Everything that `test` leaves out, and `test` itself. `make -o test test-all` adds without
# repeating: for use directly after `make test`, as .ci/run does.
test-all: test lint cross test-386 test-wheel test-torch bench-quick race fuzz-short ## test, and lint, race detector, short fuzzing, other platforms

# -short: these two look for races and for faults of 32-bit words; the full counts ran in `test`.
race:
	tools/need-cc
	CGO_ENABLED=1 go test -race -short $(CODE)

# A CPU or kernel without 32-bit x86 still compiles and vets everything.
test-386:
	@if GOOS=linux GOARCH=386 CGO_ENABLED=0 tools/can-run; then \
		echo "GOARCH=386 go test -short"; \
		GOARCH=386 CGO_ENABLED=0 go test -short $(CODE); \
	else \
		echo "this machine does not run linux/386 programs: the 386 tests were compiled, not run"; \
	fi

cross:
	@for p in darwin/arm64 windows/amd64 linux/386 linux/s390x; do \
		echo "GOOS=$${p%/*} GOARCH=$${p#*/} go vet, go build"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go vet ./...; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go build -trimpath -o build/cross/wstore-$${p%/*}-$${p#*/} ./cmd/wstore; \
	done

fuzz-short:
	tools/fuzz $(FUZZSHORT)

fuzz: ## Fuzz every target for FUZZTIME each (default 10m)
	tools/fuzz $(FUZZTIME)

lint: ## golangci-lint for Go; ruff and mypy for Python
	tools/golangci-lint run ./...
	$(or $(PY),$(error no Python environment, see above)) -m ruff check $(PYTHONS)
	$(PY) -m ruff format --check $(PYTHONS)
	cd python && $(PY) -m mypy --exclude /torch/
	cd python && MYPYPATH=.:tests $(PY) -m mypy --scripts-are-modules ../bench/*.py ../tools/pyenv ../tools/wheel-check

BENCH = WSTORE=$(CURDIR)/bin/wstore PYTHONPATH=$(CURDIR)/python $(or $(PY_BENCH),$(error no Python environment, see above))

bench: build ## wstore beside its peers, which it installs; into bench/README.md. 15 minutes, 5 GB of disk besides theirs
	$(BENCH) bench/peers.py --write

bench-all: build ## The same with more peers: 30 minutes, 7 GB
	$(BENCH) bench/peers.py --all --write

bench-convert: build ## wstore convert beside polars, into bench/README.md
	$(BENCH) bench/convert.py --write

# In torch's environment, for what can be had there: whether the benchmarks work.
bench-quick: build
	WSTORE=$(CURDIR)/bin/wstore PYTHONPATH=$(CURDIR)/python $(or $(PY_TORCH),$(error no Python environment, see above)) \
		bench/peers.py --quick --only wstore,article,numpy
	WSTORE=$(CURDIR)/bin/wstore PYTHONPATH=$(CURDIR)/python $(PY_TORCH) bench/convert.py --quick

bench-go: ## Run the Go benchmarks
	go test -run='^$$' -bench=. -benchmem ./...

bench-beyond-ram: ## Shuffled epochs of files larger than memory, Go and Python; root, 2 GB of disk
	go run ./bench/beyondram
	PYTHONPATH=$(CURDIR)/python $(or $(PY),$(error no Python environment, see above)) bench/beyond_ram.py

order-quality: build ## How well each order mixes windows: the tables in docs/orders.md
	WSTORE=$(CURDIR)/bin/wstore PYTHONPATH=$(CURDIR)/python $(or $(PY),$(error no Python environment, see above)) bench/order_quality.py

locks: ## Choose the versions of the Python packages anew; needs uv
	@for e in test torch bench; do \
		$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
			python/requirements-$$e.in -o python/requirements-$$e.txt; \
	done

notices: ## Write THIRD_PARTY_NOTICES anew
	go run ./tools/notices -w

docs: ## Run the examples in README.md and docs/ and write their output into the text
	go test ./internal/doctest -update

fmt: ## Format Go and Python
	gofmt -w .
	$(or $(PY),$(error no Python environment, see above)) -m ruff format $(PYTHONS)

clean: ## Remove what was built here; caches outside the checkout stay
	rm -rf bin build dist
