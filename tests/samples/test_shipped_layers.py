import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from infra.local.opt import merge_layers
from tests.servers.issuer import DISCOVERY, ec_key, jwk_of, rsa_key, sign
from tests.unit.documents.office_files import make_docx, make_pptx, make_xlsx

pytestmark = pytest.mark.built
LAYERS = ("CoreLayer", "DependenciesLayer")

PROGRAM = """
from aws_lambda_powertools.utilities.parameters import SecretsProvider
from stint.providers.bedrock.client import connect
from stint.retrieval.s3_vectors.client import connect as connect_vectors
from stint.store.clients import make_events, make_s3, make_sqs
from stint.tools.lambda_function.provider import connect as connect_tool
own = (make() for make in (make_s3, make_sqs, make_events))
for client in (*own, connect_vectors(), connect_tool(30), connect(), SecretsProvider().client):
    print(client.meta.service_model.service_name)
"""


def shipped(build: Path, opt: Path, *layers: str) -> dict[str, str]:
    """Return the environment of a process that has these layers in one folder, as in Lambda.

    It does not change the build: a package that is imported before the archives would write its bytecode there.
    """
    merge_layers([build / layer for layer in layers], opt)
    return {"PYTHONPATH": str(opt / "python"), "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}


def test_every_client_can_be_made_of_what_is_shipped(build: Path, tmp_path: Path) -> None:
    environment = shipped(build, tmp_path, *LAYERS) | {"AWS_DEFAULT_REGION": "eu-west-1"}

    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.stderr == ""
    names = ["s3", "sqs", "events", "s3vectors", "lambda", "bedrock-runtime", "secretsmanager"]
    assert done.stdout.split() == names


EXTRACTION = """
import asyncio, sys
from stint.documents.files import extract_text
from stint.retrieval.chunking.static import chunk_static
print(chunk_static(asyncio.run(extract_text(sys.stdin.buffer.read(), 'file')))[0].text.splitlines()[-1])
"""


@pytest.mark.parametrize(
    "make", [make_docx, lambda text: make_pptx((text, "", "")), lambda text: make_xlsx({"S": [[text]]})]
)
def test_the_worker_reads_files_of_office_with_what_is_shipped(
    build: Path, tmp_path: Path, make: Callable[[str], bytes]
) -> None:
    environment = shipped(build, tmp_path, *LAYERS, "ExtractionLayer")

    done = subprocess.run(
        [sys.executable, "-S", "-c", EXTRACTION], input=make("text"), env=environment, capture_output=True, check=False
    )

    assert (done.stdout, done.stderr) == (b"text\n", b"")


PACKED = """
from stint.retrieval.packed.block import Block, encode_block, make_row
from stint.retrieval.packed.scan import Scan, live_rows
from stint.retrieval.port import Entry, IndexQuery
block = Block(encode_block([make_row(Entry("k", (1.0, 2.0), "word", "d", "g"))], (), 2)[0])
scan = Scan(IndexQuery(1, "hybrid", (1.0, 2.0), "word"))
scan.add("block", block, live_rows(block, set()))
print(scan.results()[0].key)
"""


def test_the_packed_index_works_with_what_is_shipped(build: Path, tmp_path: Path) -> None:
    environment = shipped(build, tmp_path, *LAYERS, "PackedLayer")

    done = subprocess.run(
        [sys.executable, "-S", "-c", PACKED], env=environment, capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("k\n", "")


EVERYTHING = """
import asyncio, importlib, pkgutil, sys
import stint.http.app  # FastAPI is imported here first, without what is left out
for module in pkgutil.walk_packages(stint.__path__, "stint."):
    if not module.name.startswith(("stint.retrieval.packed.", "stint.oidc.", "stint.documents.xlsx")):
        importlib.import_module(module.name)
from stint.domain.content import text_of
from stint.net.guard import Guard
from stint.tools.mcp.provider import McpTools
from stint.tools.port import Invocation, Toolgroup

async def add(url):
    tools, group = McpTools(Guard(["127.0.0.1"])), Toolgroup("g", "model-context-protocol", mcp_endpoint=url)
    await tools.list_tools(group, {})
    return text_of((await tools.invoke(group, Invocation("add", {"a": 1, "b": 2}, "call_1", {}))).content)

for path in ("mcp", "sse"):
    print(asyncio.run(add(f"{sys.argv[1]}/{path}")))
"""


@pytest.fixture
def mcp_server() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.servers.mcp_server"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()


def test_everything_imports_and_both_transports_of_mcp_work_without_what_is_left_out(
    build: Path, tmp_path: Path, mcp_server: str
) -> None:
    environment = shipped(build, tmp_path, *LAYERS)
    command = [sys.executable, "-S", "-c", EVERYTHING, mcp_server]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    assert done.stderr == ""
    assert done.stdout.split() == ["3", "3"]


TOKENS = """
import json, sys
from stint.oidc.key_set import KeySet
from stint.oidc.tokens import OidcTokens, TokenRules
documents = json.loads(sys.stdin.readline())
keys = KeySet("https://a.example", lambda url: json.dumps(documents[url]).encode())
tokens = OidcTokens(TokenRules("https://a.example", "stint", ["RS256", "ES256"]), keys)
for line in sys.stdin:
    print(tokens.claims_of(line.strip())["sub"])
"""


def test_the_authorizer_verifies_tokens_with_what_is_shipped(build: Path, tmp_path: Path) -> None:
    environment = shipped(build, tmp_path, *LAYERS, "AuthorizerLayer")
    issuer = "https://a.example"
    claims = {"iss": issuer, "aud": "stint", "exp": 10_000_000_000, "sub": "ada"}
    keys = [jwk_of(rsa_key(), "rsa"), jwk_of(ec_key(), "ec")]
    documents = {
        f"{issuer}{DISCOVERY}": {"issuer": issuer, "jwks_uri": f"{issuer}/keys"},
        f"{issuer}/keys": {"keys": keys},
    }
    tokens = [
        sign({"alg": "RS256", "kid": "rsa"}, claims, rsa_key(), "RS256"),
        sign({"alg": "ES256", "kid": "ec"}, claims, ec_key(), "ES256"),
    ]

    done = subprocess.run(
        [sys.executable, "-S", "-c", TOKENS],
        input="\n".join([json.dumps(documents), *tokens]),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("ada\nada\n", "")
