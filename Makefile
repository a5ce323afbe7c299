# Two commands: `make demo` shows what penstock does, `make test` proves it. Both set themselves up.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Pins the dependencies; pinned itself, because its options change between releases.
UV := uv==0.13.8
# Rooms that unit tests must cover by 90 %; core, by its own tests, by 95 %.
ROOMS := workloads topics state pipelines nexmark control demos engines/simulator engines/microbatch engines/attached \
	runs cli dashboard prometheus files \
	decentralized/checker decentralized/simulator pubsub/language pubsub/operators pubsub/server pubsub/spaces
# Rooms that unit tests and slow tests together must cover by 90 %.
SLOW_ROOMS := lab reports twin

# Fails if the tests so far cover one of these rooms by less than 90 %.
define check_rooms
	@for room in $(1); do \
		$(BIN)/coverage report --include="*/penstock/$$room/*" --fail-under=90 --format=total >/dev/null \
		|| { $(BIN)/coverage report --include="*/penstock/$$room/*" --skip-covered; \
			echo "coverage of $$room is below 90 %" >&2; exit 1; }; \
	done
endef

.PHONY: help setup demo test test-browser test-decentralized test-prometheus test-kafka test-cluster lint unit slow coverage spark format docs bench \
	chaos chaos-pubsub soak reproduce lock clean

help:            ## list these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ \t/' | expand -t 14

setup: $(READY)  ## make .venv with everything and the command .venv/bin/penstock

$(READY): pyproject.toml requirements.lock scripts/check_machine.sh
	@sh scripts/check_machine.sh "$(PYTHON)"
	@echo "setting up .venv (once: some minutes, 1.7 GB on disk)" >&2
	@$(PYTHON) -m venv .venv
	@sh scripts/install.sh $(BIN)/python requirements.lock .
	@touch $(READY)
	@echo "done: .venv/bin/penstock, or penstock after . .venv/bin/activate" >&2

demo: setup      ## pictures through a pipeline on Spark that grows and shrinks with its load
	@$(BIN)/penstock run images --workload pulsar --speed-up 20 --rate-scale 3 --set service_s=0.2 \
		--policy queueing --param scope=function --guard cooldown_down_s=120

lint: setup      ## ruff, mypy --strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --config pyproject.toml >.venv/imports.log || { cat .venv/imports.log; exit 1; }
	@tail -n 2 .venv/imports.log

unit: setup      ## unit tests and doctests, with the coverage of every room that needs no JVM
	@$(BIN)/pytest tests/core src/penstock/core --cov --cov-report=
	@$(BIN)/coverage report --include='*/penstock/core/*' --fail-under=95 --skip-covered
	@$(BIN)/pytest -n auto -m "not slow and not long and not spark and not browser and not prometheus and not kafka" --ignore=tests/core --ignore=src/penstock/core \
		--cov --cov-append --cov-report=
	$(call check_rooms,$(ROOMS))

slow: setup      ## theory, hindsight, engine contracts, drawings, examples of all pages
	@$(BIN)/pytest -n auto -m "slow and not long and not spark and not kafka" $(SLOW_ROOMS:%=tests/%) --cov --cov-append --cov-report=
	@$(BIN)/pytest -n auto -m "slow and not long and not spark and not kafka" tests $(SLOW_ROOMS:%=--ignore=tests/%)

coverage: setup  ## after unit and slow: the coverage of the rooms that need both
	$(call check_rooms,$(SLOW_ROOMS))

spark: setup     ## real Spark: engine contract, operators, kills, whole runs, pages, the notebook; some minutes
	@$(BIN)/pytest -n 2 --dist loadfile -m "spark and not long and not kafka" tests

test-browser: setup ## pages in a headless Chromium, which apt installs if it can; skipped without one
	@sh scripts/install_debian.sh chromium chromium chromium-browser google-chrome
	@$(BIN)/pytest -n 0 -m browser -rs tests

test-decentralized: setup ## the model against Spin, which apt installs if it can, and long runs of processes; 4 minutes
	@sh scripts/install_debian.sh spin spin
	@$(BIN)/pytest -n 0 -rs -m "slow or long" tests/decentralized

test-prometheus: setup ## a real Prometheus, which apt installs if it can, scrapes a run; skipped without one
	@sh scripts/install_debian.sh prometheus promtool
	@$(BIN)/pytest -n 0 -m prometheus -rs tests

test-kafka: setup ## a real broker of Kafka, whose jars Maven fetches once; skipped without Java or Maven
	@$(BIN)/pytest -n 0 -m kafka -rs tests

test: lint unit slow coverage spark ## everything that CI runs

format: setup    ## mend what ruff can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: setup      ## make docs/api.md and docs/policies.md from docstrings and registries
	@$(BIN)/python -m scripts.make_docs

bench: setup     ## every benchmark (or ONLY="state nexmark"), side by side -> docs/benchmarks.md
	@$(BIN)/python scripts/bench.py docs/benchmarks.md $(ONLY)

test-cluster: setup ## a standalone cluster of Spark on this machine; a worker is killed
	@$(BIN)/pytest -n 0 -m long -rs tests/cluster

chaos: setup     ## kill processes of a pipeline on Spark 100 times, compare with an oracle; then long tests; 30 minutes
	@$(BIN)/python -m tests.tools.chaos --kills 100 $(if $(SEED),--seed $(SEED))
	@$(BIN)/pytest -n 0 -m long tests

chaos-pubsub: setup ## kill drivers of publish/subscribe 20 times while slices move, compare with brute force
	@$(BIN)/python -m tests.tools.pubsub_chaos --kills 20 $(if $(SEED),--seed $(SEED))

soak: setup      ## 10 minutes of a pipeline on Spark under load: disk, memory, files must stay flat
	@$(BIN)/python -m tests.tools.soak --minutes $(or $(MINUTES),10)

reproduce: setup ## run the published experiments, judge every claim; about 20 minutes
	@$(BIN)/penstock reproduce all --markdown docs/reproduction.md --html runs/reproduction.html

lock: setup      ## pin all dependencies again, with hashes and without addresses
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV)
	@$(BIN)/uv pip compile pyproject.toml --all-extras --group dev \
		--generate-hashes --universal --python-version 3.11 --no-emit-index-url \
		--no-emit-find-links --upgrade --quiet \
		--custom-compile-command "make lock" -o requirements.lock

clean:           ## remove everything that the other targets made
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
