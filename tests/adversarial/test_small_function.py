"""A function has memory for a warm process, its full caches and one hostile request."""

import json
import os
import subprocess
import sys

import pytest
from infra.local.engine import Engine
from tests.adversarial.sizes import DEFAULT_GROWN, PROCESS_BYTES, SMALL_GROWN, bytes_of, default_megabytes

# Prints the memory after two responses of a chain, the second one as a stream, and the bounds of the caches.
PROGRAM = """
import asyncio, json
from functions.responses.app import app, composition

async def create(**body):
    scope = {"type": "http", "method": "POST", "path": "/v1/responses", "raw_path": b"/v1/responses", "root_path": "",
             "headers": [(b"content-type", b"application/json")], "query_string": b"", "scheme": "http",
             "http_version": "1.1"}
    messages = [{"type": "http.request", "body": json.dumps(body).encode()}]
    answer = []
    async def receive():
        return messages.pop() if messages else await asyncio.Event().wait()
    async def send(message):
        answer.append(message.get("body", b""))
    await app(scope, receive, send)
    return b"".join(answer)

async def main():
    answer = await create(model="scripted/demo", input="say: Hello")
    stream = await create(model="scripted/demo", input="say: Hi", previous_response_id=json.loads(answer)["id"],
                          stream=True)
    assert b"response.completed" in stream, stream

asyncio.run(main())
pages = int(open("/proc/self/statm").read().split()[1])
print(json.dumps([pages, composition.links.bytes, composition.links.max_bytes, composition.transcripts.max_bytes]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory is read from /proc")
@pytest.mark.parametrize(("megabytes", "grown"), [(128, SMALL_GROWN), (default_megabytes(), DEFAULT_GROWN)])
def test_a_warm_process_with_full_caches_has_memory_for_a_hostile_request(
    engine: Engine, megabytes: int, grown: int
) -> None:
    environment = engine.environment() | {
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(megabytes),
        "STINT_QUEUE_URL": engine.outputs["WorkQueueUrl"],
        "STINT_TABLE": engine.outputs["TableName"],
        "STINT_BUCKET": engine.outputs["BucketName"],
        "STINT_AUTH": "none",
        "STINT_SCRIPTED_MODELS": "true",
        "STINT_SCRIPTED_WORD_SECONDS": "0",
        "POWERTOOLS_SERVICE_NAME": "adversarial",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }

    done = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    pages, cached, *bounds = json.loads(done.stdout.splitlines()[-1])
    warm = pages * os.sysconf("SC_PAGE_SIZE")
    assert cached > 0
    assert warm <= PROCESS_BYTES
    assert warm + sum(bounds) + grown <= bytes_of(megabytes)
