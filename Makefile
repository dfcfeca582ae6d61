# Berth. Needs Python 3.11 to 3.13 and make; everything else is fetched once into .venv and ~/.cache/berth.

# The first of these that Berth runs on; another one: make PYTHON=/path/to/python3 …
PYTHON = $(shell for python in python3.13 python3.12 python3.11 python3; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& echo "$$python" && break; done)
# Where the demo's pages are: make demo PORT=8010
PORT = 8000
# Which tests: make test ARGS="tests/tenants -x"
ARGS =

# Two test processes: most tests wait for a cluster. One: make test ARGS="-n 0"
WORKERS = -n 2 --dist loadfile --no-loadscope-reorder

RUN = .venv/bin/python
PYTEST = $(RUN) -m pytest
SHORT = -m 'not long and not bench and not agreement' --durations 20 --durations-min 5
READY = .venv/.ready
# As in production, so that `check --deploy` judges what people will run.
DEPLOYED = env DEBUG=false ALLOWED_HOSTS=berth.example.org PUBLIC_URL=https://berth.example.org \
	SECRET_KEY=as-long-as-a-real-one-0123456789-abcdefghijklmnopqrstuvwxyz

.PHONY: help demo demo-reset test test-long chaos check bench screenshots golden fuzz audit agreement clean
.DEFAULT_GOAL = help
.NOTPARALLEL:

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(READY) ## the portal with example people over a real control plane (PORT=8000)
	@exec $(RUN) -m playground demo --port $(PORT)

demo-reset: $(READY) ## stop the demo and forget its data
	@exec $(RUN) -m playground demo --reset

test: $(READY) check ## check, then every test except the long ones (ARGS= for pytest)
	@$(RUN) -I playground/environment.py chromium
	@$(RUN) -m playground build --release 1.37.2 --real-nodes
	@$(RUN) -m playground build --release 1.36.3
	@$(PYTEST) $(SHORT) $(WORKERS) $(ARGS)

test-long: $(READY) ## the tests that take many minutes
	@$(RUN) -I playground/environment.py chromium
	@$(RUN) -m playground build --release 1.37.2 --real-nodes
	@$(RUN) -m playground build --release 1.36.3 --real-nodes
	@$(PYTEST) -m long --timeout 7200 $(ARGS)

chaos: $(READY) ## everything breaks at random under load; prints its seed (BERTH_CHAOS_SEED=)
	@$(RUN) -m playground build --release 1.37.2
	@$(PYTEST) tests/chaos -m long -n 0 -s --timeout 7200 $(ARGS)

check: $(READY) ## style, types, floors, migrations, deployment settings
	@$(RUN) -m ruff check --quiet .
	@$(RUN) -m ruff format --check --quiet . || { echo "Not formatted: $(RUN) -m ruff format ."; exit 1; }
	@$(RUN) -m mypy
	@$(RUN) -c 'from importlinter.cli import lint_imports_command as main; main()' --no-logo
	@$(RUN) -m playground services --folder .run/check run -- \
		$(DEPLOYED) $(RUN) manage.py makemigrations --check --dry-run
	@$(DEPLOYED) $(RUN) manage.py check --deploy --fail-level WARNING
	@$(RUN) -m djlint templates --lint --quiet --profile django --ignore H015
	@! grep -nE 'https?://|index-url|find-links' requirements.lock requirements-dev.lock

bench: $(READY) ## the numbers Berth promises, measured on this machine
	@$(RUN) -m playground build --release 1.37.2
	@$(PYTEST) -m bench --timeout 7200 $(ARGS)

screenshots: $(READY) ## take the pictures of every page in docs anew
	@$(RUN) -I playground/environment.py chromium
	@BERTH_PICTURES=1 $(PYTEST) tests/journeys/test_every_page.py -q
	@$(PYTEST) --write-golden tests/journeys/test_look.py -k each_of_its_states -q

golden: $(READY) ## rewrite the golden files; read the diff
	@$(PYTEST) --write-golden $(SHORT) $(ARGS)

fuzz: $(READY) ## every parser against anything (FUZZ_SECONDS=20 each)
	@$(PYTEST) tests/fuzz -m long --timeout 7200 $(ARGS)

audit: ## whether pinned packages are known to be vulnerable (offline: says so)
	@.ci/audit requirements.lock

agreement: $(READY) ## our allocation preview against the upstream allocator, on random object sets
	@$(RUN) -m playground build --release 1.37.2
	@$(PYTEST) -m agreement --timeout 7200 $(ARGS)

clean: ## remove .venv and the caches in this folder (not the demo's data)
	@[ ! -x $(RUN) ] || $(RUN) -m playground services down
	rm -rf .venv .run .mypy_cache .ruff_cache .pytest_cache .import_linter_cache staticfiles bench-results

$(READY): requirements-dev.lock
	@[ -n "$(PYTHON)" ] || { echo "Berth needs Python 3.11, 3.12 or 3.13, and finds none: install" \
		"one, or name it with make PYTHON=/path/to/python3."; exit 1; }
	@"$(PYTHON)" -I playground/environment.py install
