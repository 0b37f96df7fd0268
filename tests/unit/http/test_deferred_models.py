"""FastAPI's models are built when they are first used, and then are as they always are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from stint.http.deferred_models import deferred_models

CORE = Path(__file__).parents[3] / "layers" / "core"

IMPORT = "import stint.http, fastapi.openapi.models as models\n"

UNBUILT = """
from pydantic import BaseModel
own = [each for each in vars(models).values() if isinstance(each, type) and issubclass(each, BaseModel)]
print(sum(each.__pydantic_complete__ for each in own), len(own) > 30)
"""

DOCUMENT = """
import json
from typing import Annotated
from fastapi import Body, Depends, FastAPI
from fastapi.security import APIKeyHeader, HTTPBearer, OAuth2PasswordBearer
from pydantic import BaseModel

class Tree(BaseModel):
    name: str
    parts: "list[Tree] | None" = None

app = FastAPI()
schemes = (APIKeyHeader(name="x-key"), HTTPBearer(), OAuth2PasswordBearer(tokenUrl="token"))

@app.post("/trees", dependencies=[Depends(each) for each in schemes])
def plant(tree: Annotated[Tree, Body(openapi_examples={"a": {"value": {"name": "a"}}})]) -> list[Tree]:
    return [tree]

print(json.dumps(app.openapi(), sort_keys=True))
"""


def run(program: str) -> str:
    environment = {"PATH": os.defpath, "PYTHONPATH": str(CORE)}
    command = (sys.executable, "-c", program)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout


def test_importing_the_package_builds_no_more_than_the_model_that_fastapi_itself_uses() -> None:
    built, many = run(IMPORT + UNBUILT).split()

    assert int(built) <= 1
    assert many == "True"


def test_a_document_is_the_same_as_that_of_fastapi_imported_as_usual() -> None:
    assert run(IMPORT + DOCUMENT) == run(DOCUMENT) != ""


def test_a_model_that_was_deferred_is_built_when_used_although_it_refers_to_a_later_one() -> None:
    with deferred_models():

        class Parent(BaseModel):
            child: "Child"

        class Child(BaseModel):
            model_config = ConfigDict(extra="forbid")
            size: int

        Parent.model_rebuild()
        assert not Parent.__pydantic_complete__

    assert Parent.model_validate({"child": {"size": "1"}}).child.size == 1
    with pytest.raises(ValueError, match="Extra inputs"):
        Parent.model_validate({"child": {"size": 1, "other": 2}})


def test_a_model_can_be_used_while_models_are_deferred() -> None:
    with deferred_models():

        class Size(BaseModel):
            value: int

        assert Size(value=2).value == 2


def test_pydantic_is_as_before_afterwards() -> None:
    config, rebuild = BaseModel.model_config, BaseModel.__dict__["model_rebuild"]

    with pytest.raises(RuntimeError), deferred_models():
        raise RuntimeError

    assert BaseModel.model_config is config
    assert BaseModel.__dict__["model_rebuild"] is rebuild

    class Later(BaseModel):
        value: int

    assert Later.__pydantic_complete__


def test_pydantic_1_is_absent_only_where_fastapi_asks_for_it() -> None:
    asked = """
import sys
from stint.http.deferred_models import without_pydantic_v1
for _ in range(2):
    with without_pydantic_v1():
        try:
            from pydantic import v1
            print("loaded")
        except ImportError:
            print("absent")
    from pydantic import v1
    print(v1.BaseModel.__module__)
"""

    assert run(asked).split() == ["absent", "pydantic.v1.main", "loaded", "pydantic.v1.main"]


UNTOLD = """
import asyncio, sys
from stint.http.app import create_app
from fastapi import APIRouter, FastAPI
from starlette.testclient import TestClient

router = APIRouter()

@router.get("/sums")
def add(left: int, right: int = 1) -> int:
    return left + right

app = FastAPI(telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False})
app.include_router(router)
with TestClient(app) as client:  # which sends the events of the lifespan
    print(client.get("/sums?left=2").json(), client.get("/sums?left=a").status_code)
print([name for name in sys.modules if name.startswith("opentelemetry")])
import opentelemetry.trace
print(opentelemetry.trace.get_tracer_provider().__module__)
"""


def test_fastapi_starts_and_serves_without_its_telemetry_which_others_can_still_import() -> None:
    assert run(UNTOLD).splitlines() == ["3 422", "[]", "opentelemetry.trace"]


def test_telemetry_that_is_loaded_before_fastapi_stays() -> None:
    loaded = """
import opentelemetry.trace
import stint.http, fastapi.telemetry._asgi as used
print(used.trace is opentelemetry.trace, opentelemetry.trace.Tracer.__name__)
"""

    assert run(loaded).split() == ["True", "Tracer"]


DEFERRED = """
import sys
import stint.http
from starlette import exceptions, formparsers
from pydantic import networks
print([name for name in ("http.client", "importlib.metadata", "tempfile") if name in sys.modules])
print(exceptions.HTTPException(404).detail, "http.client" in sys.modules)
print(networks.version("pydantic") == __import__("pydantic").VERSION)
with formparsers.SpooledTemporaryFile() as file:
    print(file.write(b"abc"))
import http.client, importlib.metadata
from tempfile import SpooledTemporaryFile
print(http.client.HTTPConnection.__module__, importlib.metadata.version.__module__, SpooledTemporaryFile.__module__)
"""


def test_modules_that_few_requests_need_are_imported_when_they_are_used() -> None:
    modules = "http.client importlib.metadata tempfile"
    assert run(DEFERRED).splitlines() == ["[]", "Not Found True", "True", "3", modules]


PLUGINS = """
import sys
import stint
from pydantic import BaseModel

class Size(BaseModel):
    value: int

print(Size(value="1").value, [name for name in sys.modules if name.startswith("importlib.metadata")])
"""


def test_a_model_is_built_without_a_search_for_plugins_of_pydantic() -> None:
    assert run(PLUGINS).split() == ["1", "[]"]
