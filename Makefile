# The short commands of the project; each does its own set-up first and can be run again at any moment.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup packages peers demo test proof check contract bench web lock clean

BIN := .venv/bin
VPN ?=
ARGS ?=

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing: Debian packages, a virtual environment, the project
	@scripts/setup

demo: setup ## run the quick study: nine arms, three workloads, a table and a report
	@scripts/demo $(ARGS)

packages: setup ## install the VPNs that are built within half a minute each, for the tests (tunnelmark packages install --all for the rest)
	@$(BIN)/tunnelmark packages install --quick

peers: packages

test: packages ## check the code, then run the tests that every change must pass
	@scripts/check
	@PATH="$$PATH:$${CARGO_HOME:-$$HOME/.cargo}/bin" cargo test --workspace --locked --quiet
	@scripts/as-root $(BIN)/python -m pytest -n auto -m "not proof" --ignore=tests/browser $(ARGS) || failed=1; \
	scripts/browser && scripts/as-root $(BIN)/python -m pytest tests/browser && exit $$failed

proof: setup ## show each claim of the project, with a verdict: all VPNs, accuracy, virtual machines; hours, on a quiet machine
	@$(BIN)/tunnelmark packages install --all || echo "go on without the VPNs that are missing"
	@scripts/as-root $(BIN)/python -m pytest -m proof $(ARGS)

check: setup ## format, lint, types, import order, Rust, English, documentation
	@scripts/check

contract: setup ## run the contract tests of one VPN or workload: make contract VPN=tinc (empty: of all)
	@scripts/as-root $(BIN)/python -m pytest tests/contract $(if $(VPN),-k "$(VPN)") $(ARGS)

bench: setup ## measure the lab itself
	@scripts/as-root $(BIN)/python -m pytest bench -o python_files='bench_*.py' -s $(ARGS)

web: ## build the program in the report from web/ (needs Node)
	@scripts/web

lock: ## write requirements.lock from pyproject.toml
	@scripts/lock

clean: ## remove the virtual environment, the built emulator and caches, keep results
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist target
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
