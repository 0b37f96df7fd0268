"""A search for secrets in all that leaves a stack, and in all that it keeps."""

import io
from collections.abc import Iterator, Mapping, Set

import httpx
import pytest
from infra.local.engine import Engine
from tests.api.app_fixture import wait_until
from tests.api.leaks import leaks, text_of
from tests.security.attacks import Attacks
from tests.security.stack import Stack
from tests.servers.scripted_http import ScriptedHTTPServer

STORED = ("#registry", "#agent:")
"""Partitions that keep the credentials of registrations and of agents, which runs need."""


class Search:
    """All that a caller, an operator, a receiver of traces or of events, or a thief of the table could read."""

    def __init__(
        self,
        stack: Stack,
        engine: Engine,
        lines: io.StringIO,
        output: pytest.CaptureFixture[str],
        traces: ScriptedHTTPServer,
    ) -> None:
        self.stack, self.engine = stack, engine
        self.answers: list[str] = []
        self.events: list[str] = []
        self.lines, self.output, self.traces = lines, output, traces

    def __call__(self, answer: httpx.Response) -> httpx.Response:
        """Note an answer, and return it."""
        self.answers.append(f"{answer.headers}\n{answer.text}")
        return answer

    def run_in_background(self, http: httpx.Client, **body: object) -> None:
        """Create a response in the background, and wait for its completion event."""
        request = {"model": "scripted/demo", "background": True, **body}
        created = self(http.post("/v1/responses", json=request)).json()["id"]
        wait_until(lambda: any(created in each for each in self.events))
        self(http.get(f"/v1/responses/{created}"))

    def records(self) -> Iterator[str]:
        client = self.engine.running.client("dynamodb")
        for table in (self.engine.outputs["TableName"], self.engine.outputs["KeysTableName"]):
            for page in client.get_paginator("scan").paginate(TableName=table):
                for item in page["Items"]:
                    if not any(part in item["pk"]["S"] for part in STORED):
                        yield "\n".join(text_of(next(iter(typed.values()))) for typed in item.values())

    def objects(self) -> Iterator[str]:
        client, bucket = self.engine.running.client("s3"), self.engine.outputs["BucketName"]
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for each in page.get("Contents", ()):
                if "/registry/" not in each["Key"]:
                    yield each["Key"] + text_of(client.get_object(Bucket=bucket, Key=each["Key"])["Body"].read())

    def places(self) -> Mapping[str, str]:
        """Return the texts in which no marker may be. A dead letter is a message of the queue that was not handled."""
        self.stack.served.settle()
        return {
            "answers": "\n".join(self.answers),
            "logs": self.lines.getvalue(),
            "metrics": self.output.readouterr().out,
            "traces": "\n".join(each.body.decode() for each in self.traces.requests),
            "events": "\n".join(self.events),
            "queue": "\n".join(self.stack.queue.sent),
            "table": "\n".join(self.records()),
            "bucket": "\n".join(self.objects()),
        }


def look_for(marks: Mapping[str, str], search: Search, stored: Set[str] = frozenset()) -> Attacks:
    """Search all places for each marker. Those in `stored` may be in the table, where a later run needs them."""
    attacks, texts = Attacks(), search.places()
    assert '"message":"Request"' in texts["logs"]
    assert "CloudWatchMetrics" in texts["metrics"]
    assert "execute_tool" in texts["traces"]
    assert "Stint Response" in texts["events"]
    assert texts["queue"]
    for name, mark in marks.items():
        for place, text in texts.items():
            if name in stored and place == "table":
                continue
            with attacks.attack(f"{name} in {place}"):
                is_found = leaks(text, mark)
            if is_found:
                at = text.find(mark)
                attacks.got_in.append(f"{name} is in the {place}: {text[max(at - 200, 0) : at + 100]}")
    return attacks
