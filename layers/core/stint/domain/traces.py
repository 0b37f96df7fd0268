"""Traces in OTLP/JSON: spans with OpenTelemetry's names, as an exporter sends them and as a receiver reads them.

The encoding is protobuf's JSON with three exceptions: ids are hexadecimal, enums are numbers, and names are in
lowerCamelCase. As in protobuf's JSON, integers of 64 bits are texts, because a JSON number may not hold them.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from stint.domain.fields import Omitted
from stint.domain.schema import Schema

VERSION = "0.1.0"
"""The version of this package, as in pyproject.toml."""

AttributeScalar = str | bool | int | float
AttributeValue = AttributeScalar | Sequence[str] | None
"""The value of an attribute; None omits the attribute."""


class SpanKind(IntEnum):
    """The place of a span among processes."""

    internal = 1
    """Work of this process."""
    client = 3
    """A call of another process, which the span waits for."""


class SpanStatusCode(IntEnum):
    """The outcome of a span."""

    unset = 0
    """It has not failed."""
    error = 2
    """It has failed; its attribute `error.type` says how."""


class OtlpSchema(Schema):
    """An object of OTLP/JSON."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class ScalarValue(OtlpSchema):
    """A value, of which one field is set."""

    string_value: Omitted[str] = None
    bool_value: Omitted[bool] = None
    int_value: Omitted[str] = None
    """A decimal number as text."""
    double_value: Omitted[float] = None

    @classmethod
    def of(cls, value: AttributeScalar) -> "ScalarValue":
        match value:
            case bool():
                return cls(bool_value=value)
            case int():
                return cls(int_value=str(value))
            case float():
                return cls(double_value=value)
        return cls(string_value=value)


class ArrayValue(OtlpSchema):
    values: list[ScalarValue]


class SpanValue(ScalarValue):
    """A value, which may be a list."""

    array_value: Omitted[ArrayValue] = None


class SpanAttribute(OtlpSchema):
    key: str
    value: SpanValue


def make_attributes(values: Mapping[str, AttributeValue]) -> list[SpanAttribute]:
    """Return the attributes with these values."""
    return [SpanAttribute(key=key, value=make_value(value)) for key, value in values.items() if value is not None]


def make_value(value: AttributeScalar | Sequence[str]) -> SpanValue:
    if isinstance(value, AttributeScalar):
        return SpanValue(**dict(ScalarValue.of(value)))
    return SpanValue(array_value=ArrayValue(values=[ScalarValue.of(each) for each in value]))


class SpanStatus(OtlpSchema):
    code: SpanStatusCode = SpanStatusCode.unset
    message: Omitted[str] = None


class TraceSpan(OtlpSchema):
    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    parent_span_id: Omitted[str] = None
    """The root span has none."""
    name: str
    kind: SpanKind
    start_time_unix_nano: str
    """Nanoseconds since 1970."""
    end_time_unix_nano: str
    """As `start_time_unix_nano`."""
    attributes: list[SpanAttribute] = Field(default_factory=list)
    status: SpanStatus


class TraceScope(OtlpSchema):
    """The library that made the spans."""

    name: str
    version: str


class ScopeSpans(OtlpSchema):
    scope: TraceScope
    spans: list[TraceSpan]


class TraceResource(OtlpSchema):
    """The service that ran."""

    attributes: list[SpanAttribute]


class ResourceSpans(OtlpSchema):
    resource: TraceResource
    scope_spans: list[ScopeSpans]


class TraceDocument(OtlpSchema):
    """A trace in OTLP/JSON, as the body of a request to a receiver of traces."""

    resource_spans: list[ResourceSpans]

    @classmethod
    def of(cls, service: str, spans: list[TraceSpan]) -> "TraceDocument":
        """Return the document with the spans of a service."""
        attributes = make_attributes({"service.name": service, "service.version": VERSION})
        of_scope = ScopeSpans(scope=TraceScope(name="stint", version=VERSION), spans=spans)
        resource = TraceResource(attributes=attributes)
        return cls(resource_spans=[ResourceSpans(resource=resource, scope_spans=[of_scope])])

    @property
    def spans(self) -> list[TraceSpan]:
        """Return the spans, the root first."""
        return self.resource_spans[0].scope_spans[0].spans
