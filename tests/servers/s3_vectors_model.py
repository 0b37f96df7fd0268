"""Checks of requests and answers of S3 Vectors: botocore's model, and the documented limits that it does not have."""

import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

METADATA_BYTES, FILTERABLE_BYTES, METADATA_KEYS = 40 * 1024, 2 * 1024, 50
FLOAT32 = 3.4028234663852886e38


class Refused(Exception):
    """An answer with an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code

    @classmethod
    def invalid(cls, path: str, message: str) -> "Refused":
        return cls(400, "ValidationException", f"Invalid request: {path}: {message}")


@cache
def model() -> Any:
    return botocore.session.get_session().get_service_model("s3vectors")


def check_input(operation: str, request: dict[str, Any]) -> None:
    """Refuse a request that is not of the operation's shape."""
    shape = model().operation_model(operation).input_shape
    report = ParamValidator().validate(request, shape)
    problems = [report.generate_report()] if report.has_errors() else []
    problems += list(beyond(request, shape, operation))
    if problems:
        raise Refused.invalid(operation, "; ".join(problems))


def check_output(operation: str, answer: dict[str, Any]) -> None:
    """Raise AssertionError if this server's answer is not of the operation's shape."""
    shape = model().operation_model(operation).output_shape
    report = ParamValidator().validate(answer, shape)
    assert not report.has_errors(), report.generate_report()
    assert not list(beyond(answer, shape, operation))


def beyond(value: Any, shape: Any, path: str) -> list[str]:
    """Return what exceeds a shape's maxima, or is not in its enumeration. botocore's validator checks only minima."""
    problems: list[str] = []
    most = shape.metadata.get("max")
    if shape.metadata.get("enum") and value not in shape.metadata["enum"]:
        problems.append(f"{path} is none of {shape.metadata['enum']}")
    if most is not None and (len(value) if isinstance(value, str | list | dict) else value) > most:
        problems.append(f"{path} is larger than {most}")
    if shape.type_name == "structure" and not getattr(shape, "is_document_type", False):
        problems += [f"{path} has no member {name}" for name in set(value) - set(shape.members)]
        for name, member in shape.members.items():
            problems += beyond(value[name], member, f"{path}.{name}") if name in value else []
    if shape.type_name == "list":
        problems += [each for at, one in enumerate(value) for each in beyond(one, shape.member, f"{path}.{at}")]
    return problems


def check_vector(vector: Sequence[float], dimension: int, metric: str, path: str) -> None:
    if len(vector) != dimension:
        raise Refused.invalid(path, f"vector must have length {dimension}, but has length {len(vector)}")
    if not all(math.isfinite(each) and abs(each) <= FLOAT32 for each in vector):
        raise Refused.invalid(path, "vector contains invalid values")
    if metric == "cosine" and not any(vector):
        raise Refused.invalid(path, "zero vectors are not supported with the cosine distance")


def check_metadata(metadata: dict[str, Any], hidden: set[str], path: str) -> None:
    filterable = {key: value for key, value in metadata.items() if key not in hidden}
    if len(metadata) > METADATA_KEYS:
        raise Refused.invalid(path, f"at most {METADATA_KEYS} keys")
    if size(metadata) > METADATA_BYTES:
        raise Refused.invalid(path, "metadata must have at most 40960 bytes")
    if size(filterable) > FILTERABLE_BYTES:
        raise Refused.invalid(path, "filterable metadata must have at most 2048 bytes")
    for key, value in metadata.items():
        if not 1 <= len(key) <= 63 or key.startswith("$"):
            raise Refused.invalid(path, f"invalid metadata key {key!r}")
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(each, str | int | float | bool) and each != "" for each in values):
            raise Refused.invalid(path, f"invalid metadata value of {key!r}")


def size(document: dict[str, Any]) -> int:
    return len(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "strict"))
