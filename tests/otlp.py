"""The rules of OTLP/JSON for traces, and readers of their spans.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto
"""

import json
import re
from typing import Any

from stint.domain.traces import TraceDocument

Json = dict[str, Any]

SPAN = {
    *("traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"),
}
NANOSECONDS = re.compile(r"[1-9][0-9]{18}")
KINDS = range(1, 6)
CODES = range(3)


def read_trace(document: TraceDocument | bytes | Json) -> list[Json]:
    """Return the spans of a document that keeps the rules, the root first."""
    if isinstance(document, TraceDocument):
        document = document.to_json()
    trace: Json = json.loads(document) if isinstance(document, bytes) else document
    assert trace.keys() == {"resourceSpans"}
    [resource_spans] = trace["resourceSpans"]
    assert resource_spans.keys() == {"resource", "scopeSpans"}
    assert resource_spans["resource"].keys() == {"attributes"}
    assert read_attributes(resource_spans["resource"]).keys() == {"service.name", "service.version"}
    [scope_spans] = resource_spans["scopeSpans"]
    assert scope_spans.keys() == {"scope", "spans"}
    assert scope_spans["scope"].keys() == {"name", "version"}
    spans: list[Json] = scope_spans["spans"]
    for span in spans:
        check_span(span)
    check_tree(spans)
    return spans


def check_span(span: Json) -> None:
    assert span.keys() - {"parentSpanId"} == SPAN
    assert re.fullmatch(r"[0-9a-f]{32}", span["traceId"])
    assert int(span["traceId"], 16)
    for name in ("spanId", "parentSpanId"):
        assert re.fullmatch(r"[0-9a-f]{16}", span.get(name, "1" * 16))
    assert span["name"]
    assert span["kind"] in KINDS
    assert NANOSECONDS.fullmatch(span["startTimeUnixNano"])
    assert NANOSECONDS.fullmatch(span["endTimeUnixNano"])
    assert span["status"].keys() - {"message"} == {"code"}
    assert span["status"]["code"] in CODES
    assert (span["status"]["code"] == 2) == ("error.type" in read_attributes(span))


def check_tree(spans: list[Json]) -> None:
    """Check that the first span is the root, and that all others are its children within its time."""
    root, *others = spans
    assert "parentSpanId" not in root
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    for span in others:
        assert span["parentSpanId"] == root["spanId"]
        started, ended = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        assert int(root["startTimeUnixNano"]) <= started <= ended <= int(root["endTimeUnixNano"])


def read_attributes(span: Json) -> Json:
    """Return the attributes of a span or a resource, whose keys must be unique."""
    keys = [each["key"] for each in span["attributes"]]
    assert len({*keys}) == len(keys)
    return {each["key"]: read_value(each["value"]) for each in span["attributes"]}


def read_value(value: Json) -> Any:
    [(kind, content)] = value.items()
    match kind:
        case "stringValue":
            assert isinstance(content, str)
        case "boolValue":
            assert isinstance(content, bool)
        case "intValue":
            assert re.fullmatch(r"-?[0-9]{1,19}", content)
            return int(content)
        case "doubleValue":
            assert isinstance(content, int | float)
        case "arrayValue":
            assert content.keys() == {"values"}
            return [read_value(each) for each in content["values"]]
        case _:
            raise AssertionError(f"OTLP has no {kind}")
    return content


def names_of(spans: list[Json]) -> list[str]:
    return [span["name"] for span in spans]
