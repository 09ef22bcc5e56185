# make demo     a real example end to end: Git, checks, registry, Spark
# make test     the tests that need nothing but what make install installs; what needs Go or a jar is skipped without it
# make test-fast  the tests that start no JVM, no broker and no server: at most a minute on two cores
# make live     the tests that need brokers, a cluster, an object store, a browser or a package of npm; Pulsar 5.0 needs Java 21 or newer
# make soak     long runs of random tests, in full
# make install  .venv with everything, pinned by constraints.txt
# make lint     ruff and mypy
# make dist     what a release is made of, in dist: wheel, sdist, what they contain (SBOM), checksums
# make broker   the jars of the Pulsar brokers that tests start, in .broker or $SCHEMACTL_BROKER_CACHE; needs Maven and Java
# make go-modules  the modules of Go's clients, in Go's own cache; needs Go
# make graph-parsers, asyncapi-parser, axe, browser, actionlint  the official parsers and the checkers of pages and workflows that
#                   tests run: packages of npm, Chromium from Debian, actionlint by Go
# make pictures, screenshots, tutorials, notebook  the pictures of README and docs, the outputs of the tutorial and of the notebook, from the real tool
# make spark-jars  the jars of Spark's Avro module, Delta and Iceberg, in .jars or $SCHEMACTL_SPARK_JARS, and in .venv an archive of
#                   Spark's classes, with which its Java starts in half of the CPU time; needs Maven and Java
# make spark-smoke  each part of the interface on Spark once, on the oldest, the pinned and the newest release, in environments that pip
#                   makes from the wheel; needs the jars of make broker
# make spark-releases  the tests of Spark on each release that is supported, besides the pinned one; takes an hour
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SPARK_RELEASES ?= 4.0.0 4.2.1 4.3.0
SPARK_SMOKE ?= 4.0.0 4.1.1 4.3.0

.PHONY: dist docs-site pictures screenshots tutorials notebook demo test test-fast live soak install lint broker go-modules spark-jars graph-parsers asyncapi-parser axe browser actionlint spark-smoke spark-releases format constraints clean

demo: $(STAMP)
	$(BIN)/python -m examples.shop.demo

# One order in every run, another than that of the files.
PYTEST := $(BIN)/python -m pytest -q -n auto --no-loadscope-reorder --randomly-seed=1

test: $(STAMP)
	$(PYTEST) -m "not live"

# Spark and its tables are not even imported.
test-fast: $(STAMP)
	$(PYTEST) -m "not (spark or broker or java or network or live or slow)" --ignore tests/spark --ignore tests/spark_smoke

# A standalone broker on a busy machine rarely fails by itself: a bookie cannot read an entry that it has just written, or does
# not answer in time. A test that fails with such an answer (5xx) runs again, and fails if the answer comes each time.
live: $(STAMP)
	$(PYTEST) -n 2 --reruns 2 --only-rerun "Entry digest does not match" --only-rerun "answers 5[0-9][0-9]" -m "live and not (timed or smoke)"

soak: $(STAMP)
	$(BIN)/python -m pytest -q -m timed
	SCHEMACTL_FAULT_SEEDS=600 SCHEMACTL_KILL_STEP=1 SCHEMACTL_HOSTILE_SEEDS=600 \
	  $(BIN)/python -m pytest -q tests/registry/pulsar/test_pulsar_faults.py tests/registry/pulsar/test_pulsar_kills.py \
	  tests/registry/pulsar/test_hostile_registry.py tests/deploy/test_killed_at_every_request.py tests/spark/test_landing_faults.py
	SCHEMACTL_FAULT_SEEDS=100 $(BIN)/python -m pytest -q tests/spark/test_landing_commits.py
	SCHEMACTL_NUMBERS_SEEDS=200 $(BIN)/python -m pytest -q tests/deploy/test_mixtures_on_pulsar.py tests/spark/test_numbers_of_targets.py
	SCHEMACTL_EVOLUTIONS=1000 $(BIN)/python -m pytest -q tests/registry/test_evolutions_live.py
	SCHEMACTL_SITE_TOPICS=5000 $(BIN)/python -m pytest -q tests/publish/test_site_in_a_browser.py
	SCHEMACTL_FUZZ_SECONDS=1800 $(BIN)/python -m pytest -q tests/cli/test_fuzzed_definitions.py
	SCHEMACTL_WORDS_SEEDS=60 $(BIN)/python -m pytest -q tests/report/test_hostile_words.py
	SCHEMACTL_AVRO_SEEDS=1000 $(BIN)/python -m pytest -q tests/spark/test_against_java.py
	SCHEMACTL_NATIVE_SEEDS=20000 $(BIN)/python -m pytest -q tests/formats/test_native_definitions.py
	SCHEMACTL_EXAMPLES=1000 $(BIN)/python -m pytest -q tests/codec tests/codegen tests/classes tests/spark/test_landing_parquet.py tests/spark/test_landing_sink.py \
	  tests/comparison tests/deploy tests/checks/test_merge_laws.py tests/checks/test_gate.py tests/history/test_branch.py tests/history/test_random_histories.py tests/registry/test_registry_model.py tests/formats/test_avro_hostile.py tests/formats/test_avro_fastavro.py tests/formats/test_json_readers.py

install: $(STAMP)

$(STAMP): pip.txt constraints.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "schemactl needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r pip.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

broker:
	sh tests/broker_recipe/broker.sh jars
	PULSAR_VERSION=4.2.4 sh tests/broker_recipe/broker.sh jars
	PULSAR_VERSION=5.0.1 sh tests/broker_recipe/broker.sh jars
	sh tests/broker_recipe/broker.sh tls-jars

# Go checks them against go.sum.
go-modules:
	cd tests/registry/server/go_admin && go mod download
	cd tests/formats/go_client && go mod download

spark-jars: $(VENV)/spark-classes.jsa
	sh tests/spark_recipe/jars.sh "$$($(BIN)/python -c 'import pyspark; print(pyspark.__version__)')"

$(VENV)/spark-classes.jsa: $(STAMP)
	$(BIN)/python tests/spark_java.py

# Exactly what the lock files name, by its hash, from whichever registry npm is set up for; no package runs a script of its own.
graph-parsers asyncapi-parser axe:
	mkdir -p .$@ && cp tests/node/$@/package.json tests/node/$@/package-lock.json .$@
	npm ci --prefix .$@ --ignore-scripts --no-audit --no-fund --no-update-notifier --fetch-retries 2 --fetch-retry-mintimeout 1000 --fetch-retry-maxtimeout 5000 --loglevel error

# Debian's package, where no Chromium is installed.
browser:
	command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium; }

# Go checks it against go.sum.
actionlint: $(STAMP)
	cd tests/ci/actionlint && go build -o "$(CURDIR)/$(BIN)/actionlint" github.com/rhysd/actionlint/cmd/actionlint

spark-smoke: $(STAMP)
	SCHEMACTL_SPARK_SMOKE="$(SPARK_SMOKE)" $(BIN)/python -m pytest -q -p no:randomly -m smoke tests/spark_smoke

spark-releases: $(STAMP)
	for release in $(SPARK_RELEASES); do sh tests/spark_recipe/release.sh $$release || exit; done

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Needs uv; hashes for every platform and Python from 3.11 on, and no download host.
constraints:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --all-extras --constraint constraints.in pyproject.toml -o constraints.txt

# The documentation as a site, in build/site; a link that leads nowhere is an error.
docs-site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

# The outputs that the first tutorial shows.
tutorials: $(STAMP)
	$(BIN)/python ci/tutorial_outputs.py docs/tutorial/first-project.md

# The outputs of the notebook; needs Java.
notebook: $(STAMP)
	$(BIN)/python ci/notebook_outputs.py examples/spark/orders.ipynb

# Every picture of README and docs, from the answers of the real tool.
pictures: $(STAMP)
	for script in hero badge terminal schema diagram; do $(BIN)/python ci/$${script}_picture*.py docs/pictures || exit; done

# They need Chromium, whose fonts differ between machines.
screenshots: $(STAMP)
	$(BIN)/python ci/screenshots.py docs/pictures

# The same bytes for the same commit: hatchling gives every file one date and one mode.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	rm -rf build/installed && bash ci/install.sh build/installed
	$(BIN)/python -m cyclonedx_py environment build/installed/bin/python --pyproject pyproject.toml --mc-type application --output-reproducible --of JSON \
	  -o dist/pulsar-schemactl.cdx.json
	cd dist && sha256sum * > SHA256SUMS

clean:
	rm -rf $(VENV) .releases .demo dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
