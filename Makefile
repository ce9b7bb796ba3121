# The two commands of the README are `make demo` and `make test`; each makes .venv when it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

MODEL := --model_zoo=model_zoo --model_def=mnist.mnist_functional.custom_model
DIGITS := model_zoo/data/digits

.PHONY: demo test check bench web clean

# Train on the digits that come with the models, then evaluate what was trained and predict with it.
demo: $(INSTALLED)
	$(BIN)/elasticdl train $(MODEL) \
	  --training_data=$(DIGITS)/train --validation_data=$(DIGITS)/test \
	  --num_epochs=3 --output=demo_run --overwrite
	$(BIN)/elasticdl evaluate --trained_model=demo_run --data=$(DIGITS)/test
	$(BIN)/elasticdl predict --trained_model=demo_run --data=$(DIGITS)/test --output=demo_predictions.csv --overwrite

# A file of tests stays in one process, which makes what its tests share once. In their order: else the few slow ones come last.
test: $(INSTALLED)
	$(BIN)/pytest -n auto --maxprocesses=4 --dist loadfile --no-loadscope-reorder

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/python bench/run.py

# Only who changes the dashboard's page needs node: what it builds is in the repository.
web:
	cd web && npm ci && npm run build

clean:
	rm -rf $(VENV) demo_run demo_predictions.csv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ElasticDL needs Python 3.11 or newer. Name one: make PYTHON=python3.12"; exit 1; }
	@echo "Making $(VENV) and installing TensorFlow and the rest into it: this takes a few minutes, once."
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) -m venv failed. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@# SQLFlow's client wants a protobuf of 2019: it lives beside the packages, for the tests that ask our server with it.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target $(VENV)/sqlflow_client sqlflow==0.15.0 || echo "The sqlflow client was not installed: its tests will be skipped."
	@touch $@
