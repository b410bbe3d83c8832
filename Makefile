# Every target sets up what it needs: a virtual environment in .venv with the versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false
# some images of Python set it; then every process of ours, and every worker of the tests, compiles all again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup wordnet demo up down test check types messages format docs notebooks bench bench-gpu fuzz faults cluster nightly scale lock sbom audit clean

setup: $(VENV)/.ready

# torch comes first and by pip, whose settings say where a CPU build lies, so that nothing pulls another one; the rest
# is installed by uv, which takes seconds where pip takes minutes (compiled, or jieba warns at its first import); it does
# not know pip's settings, so pip is the way where uv reaches no registry
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Python 3.11 to 3.13 is needed: make PYTHON=python3.12 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip uv
	$(PIP) torch==2.13.0
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[airflow,train,dev,docs,distributed,fast]' \
		|| $(PIP) -e '.[airflow,train,dev,docs,distributed,fast]'
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

# what starts a whole Airflow comes after the rest, two at a time; the rest has small frames, which threads only hold up
TEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
test: setup
	POLARS_MAX_THREADS=1 $(TEST) -n auto -m "not alone and not nightly"
	$(TEST) -n 2 -m "alone and not nightly" $$(grep -rl --include='*_test.py' 'mark\.alone' tests | sort)

# `make -j2 check` makes the site and checks the types side by side
check: setup docs types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m tests.words.names
	$(BIN)/python -m tests.words.messages --check
	$(BIN)/python -m pip check --disable-pip-version-check

types: setup
	$(BIN)/mypy

# every message that a user can see, with file and line
messages: setup
	$(BIN)/python -m tests.words.messages

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# the site, for any browser, without a server: build/docs/index.html
docs: setup
	rm -rf build/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs build/docs

# run the notebooks of examples/ and store what they print
notebooks: setup
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -c 'import sys, nbclient, nbformat; \
	[nbformat.write(nbclient.NotebookClient(nbformat.read(path, 4), record_timing=False, coalesce_streams=True).execute(), path) \
	for path in sys.argv[1:]]' examples/*.ipynb

bench: setup
	$(BIN)/python tests/bench/run.py

# one GPU beside the bare forward on it, in under ten minutes
bench-gpu: setup
	$(BIN)/python tests/bench/gpu.py

# a million hostile inputs, half an hour on one core; `make fuzz FUZZ="--only answers"`
fuzz: setup
	$(BIN)/python tests/fuzz/run.py $(FUZZ)

# The nightly form of the fault tests, one process; FAULTS_SEED draws other kills, FAULTS_REPORT is a file for the counts
faults: export FAULTS_KILLS ?= 200
faults: setup
	$(BIN)/python -m pytest -s tests/faults tests/distributed/chaos_test.py tests/commands/operate/broken_worlds_test.py

# Celery, PostgreSQL, Redis and an object store: tables equal to the embedded ones, days in any order, erasures
cluster: setup
	$(BIN)/python -m pytest $(foreach name,equality days forget,tests/distributed/$(name)_test.py)

# what takes too long for each change: faults, a cluster, real data, and benchmarks that fail if a ratio fell
nightly: faults cluster
	$(BIN)/python -m pytest -m nightly $(addprefix tests/,canaries commands dags tasks text training) \
		--ignore tests/commands/operate/broken_worlds_test.py
	$(BIN)/python tests/bench/run.py

scale: setup
	$(BIN)/python tests/bench/scale.py

# What the images install, anew from pyproject.toml and constraints.txt, every file by its hash; for Linux on x86-64, as
# the images are. TORCH says where torch's CPU wheels lie: a folder, or a page that lists them.
LOCK = $(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-emit-index-url \
	--no-emit-find-links --python-version 3.11.14 --python-platform x86_64-manylinux_2_28
IMAGE = pyproject.toml --extra airflow --extra train --extra distributed --extra fast --extra kubernetes -c constraints.txt

lock: setup
	test -n "$(TORCH)" || { echo "say where torch's CPU wheels lie: make lock TORCH=folder" >&2; exit 2; }
	$(LOCK) $(IMAGE) -o docker/requirements-gpu.txt
	echo 'torch==2.13.0+cpu' | $(LOCK) $(IMAGE) --override - --find-links '$(TORCH)' -o docker/requirements-cpu.txt
	printf 'hatchling>=1.27\nsetuptools\n' | $(LOCK) - -o docker/requirements-build.txt

# The bills of materials (CycloneDX, validated) and what is known against the packages, by tools in a place of their own
TOOLS := $(VENV)/tools

$(TOOLS)/.ready:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0 pip-audit==2.10.1
	touch $@

sbom: $(TOOLS)/.ready
	mkdir -p dist
	for image in cpu gpu; do $(TOOLS)/bin/cyclonedx-py requirements docker/requirements-$$image.txt \
	  --pyproject pyproject.toml --output-reproducible --validate -o dist/undertone-$$image.cdx.json || exit 1; done

audit: $(TOOLS)/.ready
	$(TOOLS)/bin/python docker/audit.py $(TOOLS)/bin/pip-audit docker/requirements-*.txt

clean:
	rm -rf $(VENV) build docs/reference .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
