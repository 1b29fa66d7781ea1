# make demo   the harness with vLLM and the baselines on the embedded sample, in one table
# make test   lint, types and tests, a process a core where memory allows
# make test-quick   what starts no engine and no browser, in a minute or two
# make results   docs/results.md: real models on real data, hours; goes on where it stopped
# make clean  everything that the two above made
#
# PYTHON=python3.12      the Python to make .venv with (3.11 to 3.13)
# TORCH_INDEX=URL        PyTorch's CPU wheel index (https://download.pytorch.org/whl/cpu), where the package index has
#                        no CPU build of torch; not needed where pip finds torch 2.13.0+cpu by itself
# MODEL=NAME             the model of make demo: gemma-3-270m (Google's Gemma terms apply), SmolLM2-135M-Instruct or
#                        tiny-qwen2 (random, quick)
# PYTEST_ARGS="-k dqa"   further arguments of pytest

SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=
MODEL ?= gemma-3-270m
PYTEST_ARGS ?=
# Whole files to a process, in the order of tests/conftest.py, whose scheduler it is.
PARALLEL := -n auto --dist loadscope --no-loadscope-reorder
export PYTHON VENV TORCH_INDEX

.DEFAULT_GOAL := help
.PHONY: help install models demo results test test-quick lint clean

help:
	@sed -n '/^\#/!q;s/^\# \{0,1\}//p' Makefile

install:
	@MAKE_GOAL="$(MAKECMDGOALS)" scripts/install.sh

models: install
	$(VENV)/bin/python scripts/make_models.py

demo: install
	@$(VENV)/bin/python scripts/make_models.py $(MODEL) multilingual-e5-small
	@$(VENV)/bin/python scripts/demo.py --model $(MODEL)

results: install
	@$(VENV)/bin/python scripts/make_models.py multilingual-e5-small
	@$(VENV)/bin/python benchmarks/results/make.py

lint: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

test: install lint
	@scripts/system-packages.sh
	$(VENV)/bin/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

test-quick: install
	HYPOTHESIS_PROFILE=quick $(VENV)/bin/python -m pytest $(PARALLEL) -m "not vllm and not browser and not slow" $(PYTEST_ARGS)

clean:
	rm -rf .venv .models .demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
