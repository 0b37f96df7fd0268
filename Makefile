# Every target does the set-up it needs. `make help` lists them.
PYTHON ?= python3
PORT ?= 8321
STATE ?= .stint
TOOLS ?= docs/examples/tools/template.yaml
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/uv pip install --require-hashes --no-deps
export PYTHONPATH := layers/core:layers/runtime/python:.

.DEFAULT_GOAL := help
.PHONY: help setup run invoke sam-local test test-adversarial test-local test-node test-clients bench lint types arch validate build deploy openapi lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit("Stint needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@echo "Installing the development environment into $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements/dev.txt > $(VENV)/uv.txt # uv itself comes from the same lock, by pip
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(VENV)/uv.txt
	@$(INSTALL) --python $(VENV) -r requirements/dev.txt
	@touch $@

# The local AWS engine and the SAM CLI pin botocore, so each has an environment of its own.
.venv-%/.installed: requirements/%.txt $(VENV)/.installed
	@echo "Installing $* into .venv-$* (once) ..."
	@$(PYTHON) -m venv .venv-$*
	@$(INSTALL) --python .venv-$* -r $<
	@touch $@

# Clients of docs/clients.md pin openai differently, so they have environments of their own. Two need Python 3.12.
CLIENTS := $(basename $(notdir $(wildcard requirements/clients-*.in)))
CLIENTS_PYTHON ?= $(firstword $(foreach python,python3 python3.13 python3.12 $(wildcard $(HOME)/.pyenv/versions/3.1[2-9].*/bin/python3), \
	$(shell $(python) -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo $(python))))
.venv-clients-llama-stack/.installed: requirements/clients-llama-stack.txt $(VENV)/.installed
	@$(if $(CLIENTS_PYTHON),$(CLIENTS_PYTHON) -m venv $(@D) && $(INSTALL) --python $(@D) -r $< && touch $@,\
		echo "No Python 3.12 is found: the clients that need it are left out. Name one: make CLIENTS_PYTHON=... test-clients")

setup: $(VENV)/.installed .venv-ministack/.installed ## install what `make run` and `make test` need

run: setup ## start Stint on this machine: http://127.0.0.1:8321 (PORT=9000 elsewhere, FRESH=1 empty, TOOLS=template.yaml)
	@exec $(BIN)/python -m infra.local --state $(STATE) --tools $(TOOLS) run --port $(PORT) $(if $(filter-out 0,$(FRESH)),--fresh)

# The state of `make run` is left alone unless STATE names it.
invoke: setup ## run one event: make invoke FUNCTION=turns EVENT=events/turns/create_turn.json
	@exec $(BIN)/python -m infra.local --state $(if $(filter file,$(origin STATE)),.stint/invoke,$(STATE)) --tools $(TOOLS) invoke "$(FUNCTION)" "$(EVENT)"

sam-local: setup ## prepare `sam local invoke` (needs Docker, `make build`, and `make run` in another terminal)
	@$(BIN)/python -m infra.local.sam_template $(STATE)

# Tests of real function processes, and of the whole system.
PROCESSES := tests/runtime tests/system tests/samples

# Tests of what hostile requests cost: each sends several, and takes up to ten seconds of CPU time.
HOSTILE := tests/adversarial

test: setup ## run the tests, but for those of function processes, of hostile requests and of other people's clients
	@$(BIN)/pytest -q -n auto --dist loadfile $(PROCESSES:%=--ignore %) $(HOSTILE:%=--ignore %) --ignore tests/clients $(ARGS)

test-adversarial: setup ## run the tests of what hostile requests cost in CPU time and memory (four minutes)
	@$(BIN)/pytest -q -n 0 $(HOSTILE) $(ARGS)

test-local: setup ## run the tests of function processes: the runtime, `make run` with the real Python clients, every event
	@$(BIN)/pytest -q -n auto --dist loadfile $(PROCESSES) $(ARGS)

# npm looks for nothing but what package-lock.json names.
tests/node/node_modules/.installed: tests/node/package-lock.json
	@node -e 'if (parseInt(process.versions.node) < 20) { console.error("The tests of Node clients need Node 20 or newer; this is " + process.versions.node); process.exit(1) }'
	@echo "Installing the Node clients into tests/node/node_modules (once) ..."
	@cd tests/node && npm ci
	@touch $@

test-node: setup tests/node/node_modules/.installed ## run the tests of Node clients: openai and the AI SDK (needs Node 20)
	@exec $(BIN)/python -m tests.node $(ARGS)

test-clients: setup $(CLIENTS:%=.venv-%/.installed) tests/node/node_modules/.installed ## run each snippet of docs/clients.md with its client
	@$(BIN)/pytest -q -n auto tests/clients $(ARGS)

bench: setup ## ratios of one run: cold start, streaming, tools, memory; takes a minute
	@exec $(BIN)/python -m infra.bench

lint: $(VENV)/.installed ## ruff: rules and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.installed ## mypy, strict
	@$(BIN)/mypy

arch: $(VENV)/.installed ## the direction of imports
	@$(BIN)/lint-imports --no-cache

# SAM finds python3 with pip, and make, on PATH. A region is all that validation needs; no credentials.
SAM := env -u PYTHONPATH -u MAKEFLAGS PATH="$(CURDIR)/.venv-sam/bin:$$PATH" SAM_CLI_TELEMETRY=0 \
	AWS_DEFAULT_REGION="$${AWS_DEFAULT_REGION:-us-east-1}" sam
TARGET := $(if $(RUNTIME),Runtime=$(RUNTIME)) $(if $(ARCHITECTURE),Architecture=$(ARCHITECTURE))

validate: .venv-sam/.installed $(VENV)/.installed ## check the SAM template, and with cfn-lint what it is translated to
	@$(SAM) validate --lint
	@$(BIN)/python -m infra.scripts.lint_templates

build: .venv-sam/.installed $(VENV)/.installed ## build what is deployed (RUNTIME=python3.11 ARCHITECTURE=x86_64 for another target)
	@$(SAM) build $(if $(strip $(TARGET)),--parameter-overrides "$(strip $(TARGET))")
	@$(BIN)/python infra/scripts/bytecode.py

deploy: .venv-sam/.installed $(VENV)/.installed ## deploy what was built: make deploy STACK=name (PARAMETERS="Name=value ...")
	@$(BIN)/python -m infra.scripts.deploy

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header
# What mcp asks for beyond its client, the part that is used (tests/samples/test_shipped_layers.py): a third of the layer.
UNUSED := attrs cffi click cryptography jsonschema jsonschema-specifications pycparser pyjwt python-multipart pywin32 \
	referencing rpds-py sse-starlette uvicorn
lock: $(VENV)/.installed ## resolve the dependencies again (the only target that looks for new versions)
	@$(COMPILE) pyproject.toml --group dev -o requirements/dev.txt
	@$(COMPILE) pyproject.toml -c requirements/dev.txt $(UNUSED:%=--no-emit-package %) -o layers/dependencies/requirements.txt
	@$(COMPILE) requirements/ministack.in -o requirements/ministack.txt
	@$(COMPILE) requirements/sam.in -o requirements/sam.txt
	@$(foreach clients,$(CLIENTS),$(COMPILE:3.11=$(if $(filter %-llama-stack,$(clients)),3.12,3.11)) --upgrade requirements/$(clients).in -o requirements/$(clients).txt &&) true

openapi: $(VENV)/.installed ## write docs/openapi.json
	@$(BIN)/python -m infra.scripts.openapi

clean: ## remove every environment, build and stored state
	@rm -rf .venv .venv-ministack .venv-sam .venv-clients-* .aws-sam .stint .mypy_cache .ruff_cache tests/node/node_modules
