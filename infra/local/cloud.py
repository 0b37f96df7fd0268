"""Composition of the local cloud: the engine, the functions with Lambda's API, and the front.

It runs the template that is deployed, so that a route, a right or a limit that is wrong there fails here. Three parts
replace AWS, each only as far as the template uses it; an unknown setting is an error, so that nothing is ignored
silently.

    part                  stands for                             runs
    engine.py             DynamoDB, S3, SQS, EventBridge, ...    ministack, in a process of its own
    functions.py          Lambda, and its API for tools          in this process; each function in processes of its own
    front.py              API Gateway                            in this process
    event_sources.py      event source mappings and rules        in this process
    schedules.py          the clock of EventBridge Scheduler     in this process

A start is a developer's wait: the templates are translated while the engine starts. Stopping goes the other way, and
the engine saves its state last.
"""

import asyncio
import contextlib
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infra.local.engine import ROOT, Engine, RunningEngine
from infra.local.environment import (
    SETTINGS,
    check_profile,
    has_credentials,
    local_region,
    parameter_overrides,
    service_environment,
    shell_region,
    shell_settings,
    warn_of_bedrock,
)
from infra.local.errors import LocalCloudError
from infra.local.front import Front, Log
from infra.local.functions import Functions, FunctionSpec
from infra.local.lambda_api import lambda_api
from infra.local.model_servers.report import ModelReport, report_models
from infra.local.opt import layer_folders
from infra.local.queues import Queues
from infra.local.server import listen_apart, serving
from infra.local.sources import retries
from infra.local.system import Function, System
from infra.local.tool_functions import TOOLS, tool_functions
from infra.local.translation import open_routes, translate

TEMPLATE = ROOT / "template.yaml"
CREDENTIALS_KEY = "STINT_CREDENTIALS_KEY_ARN"
"""The setting of the key that encrypts credentials. Without it, the engine's own is used."""
SANDBOX = "Sandbox"
"""The function of the template that other functions may invoke, beside those that are tools."""

# Processes of one function at a time. As in Lambda, one more request waits, and further requests get 429.
CONCURRENCY = 16
# Invocations at a time of a streaming function's process, if it is shared, and its least memory in MB. On Managed
# Instances a function has 2 GB or more: https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances.html
SHARED = 64
SHARED_MEMORY = 2048
_STREAMING = "/opt/stint-runtime"


@dataclass(frozen=True)
class Cloud:
    """A running local cloud.

    `models` has the default model; `services` are the environment variables through which functions find AWS; `tools`
    are the names of the user's functions.
    """

    system: System
    engine: RunningEngine
    functions: Functions
    queues: Queues
    models: ModelReport
    services: Mapping[str, str]
    tools: Sequence[str]


@dataclass(frozen=True)
class Plan:
    """Settings of a local cloud."""

    shell: Mapping[str, str]
    """The environment with the user's settings."""
    template: Path = TEMPLATE
    """The template of the system."""
    tools: Path = TOOLS
    """A template with functions to use as tools."""
    python: Path = Path(sys.executable)
    """The interpreter that runs the functions."""
    concurrency: int = CONCURRENCY
    """Maximum processes of one function."""
    shared: bool = False
    """A streaming function is one process for many invocations, as on Lambda Managed Instances, and requests that
    find no place wait. Otherwise everything is as in Lambda."""
    checks_models: bool = False
    """The lists of the model servers are requested during the start."""
    authorize: bool = False
    """Callers need keys. Without it, everyone may call the API, as if it was built with AUTH=none."""
    visibility: int | None = None
    """Seconds that replace the visibility timeout of the queues that trigger functions."""


@contextlib.asynccontextmanager
async def running_cloud(
    plan: Plan, engine: Path | RunningEngine | None, log: Log, lock: int | None = None
) -> AsyncIterator[Cloud]:
    """Run the functions of the template and Lambda's API, without the front.

    `engine` is the state folder of an engine to start (None: a temporary one), or a running engine. `lock` is a locked
    file that the engine holds until it has ended. `log` gets (subject, line). Raises LocalCloudError for errors that
    the user can fix, and at the end if the engine has not saved its state.
    """
    async with contextlib.AsyncExitStack() as stack:
        settings = shell_settings(plan.shell, authorize=plan.authorize)
        await asyncio.to_thread(check_profile, plan.shell)
        region = await asyncio.to_thread(local_region, plan.shell)
        translating = asyncio.create_task(asyncio.to_thread(translate_all, plan, region))
        stack.callback(translating.cancel)
        checking = asyncio.create_task(report_models(settings, plan.shell)) if plan.checks_models else None
        if checking:
            stack.callback(checking.cancel)
        if not isinstance(engine, RunningEngine):
            engine = await stack.enter_async_context(started(Engine(engine, region=region, lock=lock)))
        settings.setdefault("STINT_BEDROCK_REGION", await asyncio.to_thread(shell_region, plan.shell))
        has_key = any(settings.get(name) for name in (CREDENTIALS_KEY, "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_KMS"))
        if not has_key:
            settings[CREDENTIALS_KEY] = await asyncio.to_thread(engine.hold_credentials_key)
        translated, translated_tools = await translating
        models = await checking if checking else ModelReport(settings["STINT_DEFAULT_MODEL"])
        settings["STINT_DEFAULT_MODEL"] = models.default
        settings |= {"STINT_MODELS": ",".join(models.listed)} if models.listed else {}
        system = System(
            plan.template,
            translated,
            region=region,
            parameters=parameter_overrides(translated, settings),
            outputs=engine.outputs,
        )
        links = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stint-layers-")))
        listener = stack.enter_context(contextlib.closing(listen_apart()))
        signs = await asyncio.to_thread(has_credentials)
        if plan.checks_models and not signs:
            models = replace(models, warnings=(*models.warnings, *warn_of_bedrock(settings)))
        services = service_environment(engine.environment(), base_url(listener), settings, signs=signs)
        if has_key and "AWS_ENDPOINT_URL_KMS" not in settings:  # a key of AWS, which the engine does not have
            services.pop("AWS_ENDPOINT_URL_KMS", None)
        tools = tool_functions(plan.tools, translated_tools, region, system.functions)
        environments = [own_environment(function, services, system.functions) for function in system.functions]
        environments += [{**tool.environment, **services} for tool in tools]
        specs = make_specs(plan, system, tools, environments, links=links)
        queues = Queues(engine, log)
        stack.callback(queues.close)
        functions = Functions(
            specs, concurrency=plan.concurrency, log=log, throttle=not plan.shared, send_failure=queues.send_failure
        )
        stack.push_async_callback(functions.stop)
        names = [tool.name for tool in tools]
        allowed = {*names} | {one.name for one in system.functions if one.logical_id == SANDBOX}
        await stack.enter_async_context(serving(lambda_api(functions, allowed), listener))
        yield Cloud(system, engine, functions, queues, models=models, services=services, tools=names)


def make_specs(
    plan: Plan, system: System, tools: Sequence[Function], environments: Sequence[Mapping[str, str]], links: Path
) -> list[FunctionSpec]:
    """Return what the functions of the system and of the tools need to run, with their environments in this order."""
    pairs = zip((*system.functions, *tools), environments, strict=True)
    specs = [function_spec(function, each, links, plan.python) for function, each in pairs]
    edited = {tool.name for tool in tools}
    specs = [replace(spec, reloads=spec.name in edited) for spec in specs]
    failures = retries(system)
    specs = [replace(spec, retries=failures.get(spec.name, spec.retries)) for spec in specs]
    return [with_concurrency(spec) for spec in specs] if plan.shared else specs


def translate_all(plan: Plan, region: str) -> list[dict[str, Any]]:
    """Translate the templates of the system and of the tools."""
    change = None if plan.authorize else open_routes
    return [translate(plan.template, region, change=change), translate(plan.tools, region)]


@contextlib.asynccontextmanager
async def serving_front(cloud: Cloud, listener: socket.socket, log: Log) -> AsyncIterator[str]:
    """Serve the API of a running cloud on this socket and yield its base URL."""
    origin = cloud.services.get("STINT_CORS_ORIGIN", "")
    async with serving(Front(cloud.system, cloud.functions, log, origin), listener):
        yield base_url(listener)


@contextlib.asynccontextmanager
async def started(engine: Engine) -> AsyncIterator[RunningEngine]:
    """Start the engine in a thread, and stop it at the end, also if the start is interrupted.

    Raises LocalCloudError if the engine has not saved its state, unless the body has raised one.
    """
    starting, failed = asyncio.create_task(asyncio.to_thread(engine.start)), False
    try:
        await asyncio.shield(starting)
        yield engine.running
    except LocalCloudError:
        failed = True
        raise
    finally:
        await asyncio.wait([starting])
        await asyncio.to_thread(engine.stop)
        if engine.unsaved and not failed:
            raise LocalCloudError(engine.unsaved)


def own_environment(
    function: Function, services: Mapping[str, str], functions: Sequence[Function]
) -> Mapping[str, str]:
    """Return the environment of a function of the template, which `services` overrides.

    As when it is deployed, a function gets no setting that the template declares for other functions only. Code of
    models gets no setting that is not declared for it.
    """
    own = function.environment
    others = {name for each in functions for name in each.environment} - own.keys()
    if function.logical_id == SANDBOX:
        others |= {name for name in services if name.startswith(SETTINGS)} - own.keys()
    return {**own, **{name: value for name, value in services.items() if name not in others}}


def function_spec(function: Function, environment: Mapping[str, str], links: Path, python: Path) -> FunctionSpec:
    """Return the specification of a template's function."""
    if not function.code.is_dir():
        raise LocalCloudError(f"function {function.logical_id}: its folder {function.code} does not exist")
    environment = dict(environment)
    wrapper = environment.pop("AWS_LAMBDA_EXEC_WRAPPER", None)
    environment.pop("STINT_CONCURRENCY", None)  # the local cloud decides how many events a process gets
    return FunctionSpec(
        name=function.name,
        handler=function.handler,
        code=function.code,
        layers=layer_folders(function.layers, links),
        environment=environment,
        timeout=function.timeout,
        memory=function.memory,
        wrapper=wrapper,
        python=python,
    )


def with_concurrency(spec: FunctionSpec) -> FunctionSpec:
    """Let one process run many invocations, if the function streams."""
    if spec.wrapper != _STREAMING:
        return spec
    return replace(spec, at_once=SHARED, memory=max(spec.memory, SHARED_MEMORY))


def base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{host}:{port}"
