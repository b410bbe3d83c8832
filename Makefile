# Every target sets up what it needs: a virtual environment in .venv with the versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: setup wordnet demo up down test check format bench clean

setup: $(VENV)/.ready

# torch comes first, so that a CPU build that is already at hand is taken and nothing pulls another one
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Python 3.11 to 3.13 is needed: make PYTHON=python3.12 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) torch==2.13.0
	$(PIP) -e '.[train,dev,distributed,fast]'
	touch $@

# WordNet from Debian's packages, without root; elsewhere `python -m nltk.downloader wordnet`
wordnet: setup $(VENV)/nltk_data/corpora/wordnet

$(VENV)/nltk_data/corpora/wordnet:
	d=$$(mktemp -d) && cd $$d && apt-get download -qq wordnet-base wordnet-sense-index && cd - >/dev/null && \
	$(BIN)/python -c 'import sys; from pathlib import Path; from pipeline.text.wordnet import unpack; \
	unpack([*map(Path, sys.argv[2:])], Path(sys.argv[1]))' $(VENV)/nltk_data $$d/*.deb && rm -r $$d

demo: setup
	$(BIN)/undertone demo

up: setup
	$(BIN)/undertone up

down:
	test ! -x $(BIN)/undertone || $(BIN)/undertone down

# what starts a whole Airflow has the machine to itself
test: setup
	$(BIN)/python -m pytest -n logical --dist loadfile -m "not alone"
	$(BIN)/python -m pytest -m alone

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pip check --disable-pip-version-check

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python tests/bench/run.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
