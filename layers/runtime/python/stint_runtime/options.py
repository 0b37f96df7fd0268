"""The settings of the runtime, read from the function's environment."""

from collections.abc import Mapping
from dataclasses import dataclass

from stint_runtime.errors import FunctionError, InitError

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html: MB
_MEMORY = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"
_MEMORY_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Options:
    """`route_timeout_ms` is the integration's timeout. `buffered` disables streaming, for `sam local`.

    `concurrency` is the number of events that the process takes at once, `function_bytes` the memory of the function.
    """

    route_timeout_ms: int | None = None
    buffered: bool = False
    concurrency: int = 1
    function_bytes: int | None = None

    @property
    def memory_bytes(self) -> int | None:
        """Return the memory above which a process that takes many events at once requests no further ones."""
        return None if self.function_bytes is None else round(self.function_bytes * _MEMORY_SHARE)


def read_options(environment: Mapping[str, str]) -> Options:
    """Return the settings. Raises InitError with the name of a malformed variable."""
    timeout = environment.get("STREAM_ROUTE_TIMEOUT_SECONDS")
    memory = environment.get(_MEMORY, "")
    return Options(
        route_timeout_ms=_milliseconds("STREAM_ROUTE_TIMEOUT_SECONDS", timeout) if timeout else None,
        buffered=bool(environment.get("AWS_SAM_LOCAL")),
        concurrency=_concurrency(environment),
        function_bytes=int(memory) * 1024 * 1024 if memory.isdecimal() else None,
    )


def _concurrency(environment: Mapping[str, str]) -> int:
    """Return the smaller one of the function's setting and Lambda's limit, which only Managed Instances have."""
    names = ("STINT_CONCURRENCY", "AWS_LAMBDA_MAX_CONCURRENCY")
    values = [_positive(name, environment[name]) for name in names if environment.get(name)]
    return min(values, default=1)


def _positive(name: str, text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise _malformed(name, text, "a whole number of at least 1")
    return int(text)


def _milliseconds(name: str, text: str) -> int:
    try:
        return round(float(text) * 1000)
    except (ValueError, OverflowError):
        raise _malformed(name, text, "a number of seconds") from None


def _malformed(name: str, text: str, expected: str) -> InitError:
    message = f"{name} is {text[:100]!r}. Set it to {expected} in the function's environment."
    return InitError(FunctionError("Runtime.InvalidConfiguration", "InvalidConfiguration", message))
