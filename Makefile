# Two commands: `make demo` shows what penstock does, `make test` proves it. Both set themselves up.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Pins the dependencies; pinned itself, because its options change between releases.
UV := uv==0.13.8
# Rooms that tests without a JVM must cover by 90 %; core, by its own tests, by 95 %.
ROOMS := workloads topics state pipelines nexmark control

.PHONY: help setup demo test lint unit slow spark format bench chaos soak reproduce lock clean

help:            ## list these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ \t/' | expand -t 14

setup: $(READY)  ## make .venv with everything and the command .venv/bin/penstock

$(READY): pyproject.toml requirements.lock scripts/check_machine.sh
	@sh scripts/check_machine.sh "$(PYTHON)"
	@echo "setting up .venv (once: some minutes, 1.3 GB on disk)" >&2
	@$(PYTHON) -m venv .venv
	@sh scripts/install.sh $(BIN)/python requirements.lock .
	@touch $(READY)

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
	@$(BIN)/pytest -n auto -m "not slow and not spark" --ignore=tests/core --ignore=src/penstock/core \
		--cov --cov-append --cov-report=
	@for room in $(ROOMS); do \
		$(BIN)/coverage report --include="*/penstock/$$room/*" --fail-under=90 --format=total >/dev/null \
		|| { $(BIN)/coverage report --include="*/penstock/$$room/*" --skip-covered; \
			echo "coverage of $$room is below 90 %" >&2; exit 1; }; \
	done

slow: setup      ## theory, hindsight, engine contracts, drawings, README examples
	@$(BIN)/pytest -n auto -m "slow and not spark" tests

spark: setup     ## real Spark: engine contract, operators, kills, whole runs; some minutes
	@$(BIN)/pytest -n 0 -m "spark and not long" tests

test: lint unit slow spark ## everything that CI runs

format: setup    ## mend what ruff can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup     ## every benchmark (or ONLY="state nexmark"), side by side -> docs/benchmarks.md
	@$(BIN)/python scripts/bench.py docs/benchmarks.md $(ONLY)

chaos: setup     ## kill processes of a pipeline on Spark 100 times, compare with an oracle; 20 minutes
	@$(BIN)/python -m tests.tools.chaos --kills 100 $(if $(SEED),--seed $(SEED))
	@$(BIN)/pytest -n 0 -m long tests

soak: setup      ## 10 minutes of a pipeline on Spark under load: disk, memory, files must stay flat
	@$(BIN)/python -m tests.tools.soak --minutes $(or $(MINUTES),10)

reproduce: setup ## run the published experiments, judge every claim; about 10 minutes
	@$(BIN)/penstock reproduce all --markdown docs/reproduction.md --html runs/reproduction.html

lock: setup      ## pin all dependencies again, with hashes and without addresses
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV)
	@$(BIN)/uv pip compile pyproject.toml --all-extras --group dev \
		--generate-hashes --universal --python-version 3.11 --no-emit-index-url \
		--no-emit-find-links --upgrade --quiet \
		--custom-compile-command "make lock" -o requirements.lock

clean:           ## remove everything that the other targets made
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
