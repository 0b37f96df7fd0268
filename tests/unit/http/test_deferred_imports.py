"""FastAPI starts without modules that few requests need, and has them when it uses them."""

import os
import subprocess
import sys
from pathlib import Path

CORE = Path(__file__).parents[3] / "layers" / "core"

IMPORT = "import stint.http\n"

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


def test_a_document_is_the_same_as_that_of_fastapi_imported_as_usual() -> None:
    assert run(IMPORT + DOCUMENT) == run(DOCUMENT) != ""


def test_pydantic_1_is_absent_only_where_fastapi_asks_for_it() -> None:
    asked = """
import sys
from stint.http.deferred_imports import without_pydantic_v1
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
from stint.http.deferred_imports import DEFERRED
from starlette import exceptions, formparsers, requests, responses
from pydantic import networks
print([name for name in DEFERRED if name in sys.modules])
print(exceptions.HTTPException(404).detail, "http.client" in sys.modules)
print(networks.version("pydantic") == __import__("pydantic").VERSION)
with formparsers.SpooledTemporaryFile() as file:
    print(file.write(b"abc"))
response = responses.Response()
response.set_cookie("name", "va lue", expires=0)
print(response.headers["set-cookie"].split(";")[0], requests.cookie_parser('a="\\\\101"'))
from aws_lambda_powertools.logging.logger import jmespath_utils
print(responses.guess_type("a.txt")[0], jmespath_utils.query({"id": 1}, "id"))
import email.message, email.utils, http.client, http.cookies, importlib.metadata, mimetypes
from tempfile import SpooledTemporaryFile
print(http.client.HTTPConnection.__module__, importlib.metadata.version.__module__, SpooledTemporaryFile.__module__)
print(email.message.Message.__module__, email.utils.formatdate.__module__, http.cookies.SimpleCookie.__module__)
print(mimetypes.guess_type.__module__)
"""


def test_modules_that_few_requests_need_are_imported_when_they_are_used() -> None:
    assert run(DEFERRED).splitlines() == [
        *("[]", "Not Found True", "True", "3", """name="va lue" {'a': 'A'}""", "text/plain 1"),
        *("http.client importlib.metadata tempfile", "email.message email.utils http.cookies", "mimetypes"),
    ]


SERVED = """
import sys
import stint.http
from typing import Annotated
from fastapi import FastAPI, Form
from fastapi.security import OAuth2
from pydantic import BaseModel
from starlette.testclient import TestClient

class Size(BaseModel):
    value: int

app = FastAPI(telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False})

@app.post("/sizes")
def add(size: Size) -> Size:
    return size

client = TestClient(app)
found = [client.post("/sizes", json={"value": value}) for value in (1, "a")]
found.append(client.post("/sizes", content="{}", headers={"content-type": "text/plain"}))
print([each.status_code for each in found], client.get("/docs").status_code, client.get("/redoc").status_code)
print(client.get("/openapi.json").json()["components"]["schemas"]["Size"]["type"])
try:
    OAuth2()
except ValueError as error:
    print(error.error_count() > 0)
"""


def test_fastapi_reads_bodies_and_serves_documents_with_the_modules_that_it_imports_then() -> None:
    assert run(SERVED).splitlines() == ["[200, 422, 422] 200 200", "object", "True"]


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
