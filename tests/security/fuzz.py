"""Generated requests with a key to every operation of the OpenAPI document: `make fuzz`.

The arguments are further ones of `schemathesis run`.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from infra.local.engine import Engine
from tests.security.routes import DOCUMENT
from tests.security.stack import Stack
from tests.servers import chat_completions, embeddings
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".venv-fuzz" / "bin" / "schemathesis"
CONFIG = Path(__file__).with_name("schemathesis.toml")


def answer(received: Received) -> Reply:
    """Answer as the provider of the models that the document's examples name."""
    if received.path.endswith("/embeddings"):
        return embeddings.answer(received)
    return chat_completions.answer(received)


def main(arguments: Sequence[str]) -> int:
    with (
        Engine() as engine,
        mock.patch.dict(os.environ, engine.environment()),
        mock.patch.object(embeddings, "DIMENSION", 1536),
        ScriptedHTTPServer(answer) as provider,
    ):
        variables = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "fuzz"}
        with Stack(engine, variables) as stack:
            return run(stack, arguments).returncode


def run(stack: Stack, arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run schemathesis against the API."""
    key = stack.create_key("fuzz").key
    command = [str(PROGRAM), "--config-file", str(CONFIG), "run", str(DOCUMENT), "--url", stack.served.url]
    command += ["-H", f"Authorization: Bearer {key}", "--request-timeout", "60", "--no-color", *arguments]
    with tempfile.TemporaryDirectory() as folder:  # it writes its cache into the current one
        return subprocess.run(command, check=False, cwd=folder, text=True, stdout=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
