# Two commands do everything on a fresh machine: `make demo` and `make test`. Neither needs the other.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test test-long check docs

.venv/base: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[weights]'
	touch $@

.venv/all: .venv/base
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[weights,test,docs]'
	touch $@

install: .venv/base

demo: .venv/base
	$(BIN)/peerseg demo --out demo

check: .venv/all
	$(BIN)/ruff format --check src tests
	$(BIN)/ruff check src tests
	$(BIN)/mypy
	$(BIN)/codespell src tests docs README.md CHANGELOG.md CONTRIBUTING.md

docs: .venv/all
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test: check docs
	$(BIN)/pytest -m "not long"

test-long: .venv/all
	$(BIN)/pytest -m long
