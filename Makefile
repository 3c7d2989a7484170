# Two commands do everything on a fresh machine:
#
#   make demo     environment, model, and a full revision of a real harness around a real language model
#   make test     environment, model, and every test
#
# PYTHON=/usr/bin/python3.12 picks the interpreter, VENV=path the place of the virtual environment.

SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV ?= .venv
BIN := $(VENV)/bin
FAMILY ?= chain_sum
export VENV PYTHON

.PHONY: help
help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: env
env:  ## Create .venv from the locks (redone only when they change)
	@bash scripts/setup.sh

.PHONY: train-env
train-env: env  ## The same with the packages that training needs
	@WITH=train bash scripts/setup.sh

.PHONY: model
model: env  ## Fetch SmolLM2-135M-Instruct, the embedded model
	@$(BIN)/hl model pull smollm2

.PHONY: demo
demo: env  ## Revise a harness on FAMILY (chain_sum) and show what came of it
	@bash scripts/demo.sh $(FAMILY)

# As root the sandbox tests run twice more, since its tiers depend on who runs it: as an ordinary user, and as one on a
# machine without user namespaces.
.PHONY: test
test: train-env model  ## Run every test (as root: the sandbox tests as an ordinary user too)
	@$(BIN)/python -m pytest $(PYTEST_ARGS)
	@if [ "$$(id -u)" -eq 0 ]; then bash scripts/test-as-user.sh; else bash scripts/test-without-userns.sh; fi

.PHONY: check
check: env  ## Lint, format, types, layers, generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/cli_reference.py --check

.PHONY: docs
docs: env  ## Write docs/cli.md anew from the commands' own help
	@$(BIN)/python scripts/cli_reference.py

.PHONY: bench
bench: env  ## Measure hl itself: attempts a second, overhead, start-up, rewards
	@$(BIN)/python -m bench $(BENCH_ARGS)

# Under two hours on two cores; results in hl's cache directory. Stopped, the same command goes on.
.PHONY: learn
learn: train-env  ## Train a proposer: teacher, SFT, GRPO, tables (hours; STEP=sft stops there)
	@bash scripts/learn.sh $(STEP)

# Skips itself, with exit code 0, where there is no GPU.
.PHONY: gpu-check
gpu-check: train-env  ## Check on one GPU what the tests check on a CPU (minutes)
	@$(BIN)/python scripts/gpu_check.py

.PHONY: lock
lock:  ## Resolve pyproject.toml anew and write requirements/*.txt
	@bash scripts/lock.sh

.PHONY: clean
clean:  ## Remove the environment and caches (demo/ is kept)
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
	find hl tests scripts examples bench -name __pycache__ -prune -exec rm -rf {} +
