"""Logs and metrics: one JSON line per request, metrics in CloudWatch's embedded metric format, no message content.

Modules log through the standard library (`logging.getLogger(__name__)`). Powertools formats the lines of "stint". Only
`write_request_line` writes a line by itself: the same as from Powertools, in half of the time.
"""

import json
import logging
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics.functions import is_metrics_disabled
from aws_lambda_powertools.shared.functions import get_tracer_id

from stint.dataclasses import dataclass, field
from stint.domain.inference import Usage
from stint.domain.known_secrets import begin_request, redact
from stint.domain.receipts import DIGITS
from stint.embedded_metrics import MILLISECONDS, EmbeddedMetrics
from stint.log_keys import begin_log_keys, end_log_keys, log_keys
from stint.metering import set_meter
from stint.request_totals import RequestTotals, begin_totals

if TYPE_CHECKING:  # they cost a cold start 30 ms or more, and few functions answer with them
    from stint.domain.notifications.completion_events import CompletionEvent
    from stint.domain.openai.response_resource import Response, ResponseUsage

T = TypeVar("T")
write_json = json.JSONEncoder(default=str, separators=(",", ":")).encode
SERVICE = "stint"
"""The name of the logger, and the service of its lines."""


@cache
def make_logger() -> Logger:
    """Set up the JSON logger "stint", with the level POWERTOOLS_LOG_LEVEL, once per process.

    Lines are ASCII, so that a caller's text can neither break a line nor control a terminal.
    """
    logger = Logger(service=SERVICE, json_serializer=serialize)
    logger.registered_handler.addFilter(put_log_keys)
    return logger


def put_log_keys(record: logging.LogRecord) -> bool:
    """Add the request's keys to a line of any module."""
    for key, value in log_keys().items():
        record.__dict__.setdefault(key, value)
    return True


def trace_key(value: str) -> dict[str, str]:
    """Return Powertools' key of the trace, if there is one."""
    root = value.split(";")[0].removeprefix("Root=")
    return {"xray_trace_id": root} if root else {}


def serialize(line: dict[str, Any]) -> str:
    """Write a log line without the current request's credentials.

    Powertools takes the trace from the environment, where a process that runs several requests at once has none.
    """
    if trace := log_keys().get("xray_trace_id"):
        line["xray_trace_id"] = trace
    return redact(write_json(line))


def write_request_line(fields: Mapping[str, object]) -> None:
    """Write the line of a request, in one write, if lines of the level INFO are written."""
    logger = make_logger()
    handler = logger.registered_handler
    if not isinstance(handler, logging.StreamHandler):
        logger.info("Request", extra=fields)
        return
    if not logging.getLogger(SERVICE).isEnabledFor(logging.INFO):
        return
    now, keys = time.time(), log_keys()
    line = {
        "level": "INFO",
        "location": f"finish_request:{Observation.finish_request.__code__.co_firstlineno}",
        "message": "Request",
        "timestamp": time.strftime(f"%Y-%m-%d %H:%M:%S,{int(now % 1 * 1000):03}%z", time.localtime(now)),
        "service": SERVICE,
        **fields,
        **{key: value for key, value in keys.items() if key not in fields},
    }
    if logger.sampling_rate:
        line["sampling_rate"] = logger.sampling_rate
    if "xray_trace_id" not in keys and (trace := get_tracer_id()):
        line["xray_trace_id"] = trace
    with suppress(OSError, ValueError):  # a closed stream fails no request, as in the standard library
        handler.stream.write(serialize(line) + "\n")
        handler.flush()


@cache
def process_started() -> float:
    """Return the time of the process's first request, which is the cold start."""
    return time.monotonic()


@dataclass(slots=True)
class Observation:
    """The log line and the metrics of one request. `xray_trace_id` is the value of X-Amzn-Trace-Id."""

    request_id: str
    function: str
    xray_trace_id: str = ""
    started: float = field(default_factory=time.monotonic)
    metrics: EmbeddedMetrics = field(init=False)
    totals: RequestTotals = field(init=False)

    def __post_init__(self) -> None:
        begin_request()
        set_meter(None)
        self.totals = begin_totals()
        self.metrics = EmbeddedMetrics(self.function)
        cold_start = process_started.cache_info().currsize == 0
        process_started()
        make_logger()
        begin_log_keys(request_id=self.request_id, cold_start=cold_start, **trace_key(self.xray_trace_id))
        if cold_start:
            self.count("ColdStart")

    def count(self, name: str, value: float = 1) -> None:
        self.metrics.add(name, value)

    async def follow_response(self, events: AsyncIterator[T]) -> AsyncGenerator[T, None]:
        """Yield a response's events, and record its metrics."""
        first = True
        last: Response | None = None
        async for event in events:
            if first:
                self.time_first_event()
                self.count("Responses")
                first = False
            last = getattr(event, "response", last)
            yield event
        if last is not None:
            self.count("ResponseErrors", int(last.status == "failed"))
            self.count_tokens(last.usage or Usage(), Usage())

    def count_finished(self, event: "CompletionEvent") -> None:
        """Count a turn or response that the worker ran to its end."""
        self.count(f"{event.kind}s")
        self.count(f"{event.kind}Errors", int(event.status == "failed"))
        self.count_tokens(event.usage or Usage(), Usage())

    def time_first_event(self) -> None:
        self.metrics.add("TimeToFirstEvent", self.elapsed_milliseconds(), MILLISECONDS)

    async def time_events(self, events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """Yield events, and record the time of the first one."""
        first = True
        async with aclosing(events):
            async for event in events:
                if first:
                    self.time_first_event()
                    first = False
                yield event

    def count_started_turn(self) -> None:
        self.count("Turns")

    def count_ended_turn(self, usage: Usage | None, used: Usage | None, *, failed: bool) -> None:
        """Count the end of a turn, or its pause, and its tokens. `used` is the usage before the turn was resumed."""
        self.count("TurnErrors", int(failed))
        self.count_tokens(usage or Usage(), used or Usage())

    def count_tokens(self, usage: "Usage | ResponseUsage", used: Usage) -> None:
        self.count("InputTokens", usage.input_tokens - used.input_tokens)
        self.count("OutputTokens", usage.output_tokens - used.output_tokens)

    def count_totals(self) -> None:
        """Record the failed model calls of a request, its lost traces and its cost, if there are any.

        Each metric has a price.
        """
        if self.totals.model_errors:
            self.count("ModelErrors", self.totals.model_errors)
        if self.totals.lost_traces:
            self.count("TracesLost", self.totals.lost_traces)
        if self.totals.dollars:
            self.count("Dollars", round(self.totals.dollars, DIGITS))

    def elapsed_milliseconds(self) -> float:
        return round((time.monotonic() - self.started) * 1000, 1)

    def finish_request(self, method: str, route: str, status: int) -> None:
        """Write the request's line and metrics."""
        self.count("Errors", int(status >= 500))
        self.count_totals()
        duration = self.elapsed_milliseconds()
        write_request_line({"method": method, "route": route, "status": status, "duration_ms": duration})
        self.write_metrics()
        end_log_keys()

    def write_metrics(self) -> None:
        """Write the metrics as one line, in one write, because other threads write, too."""
        if is_metrics_disabled():
            return
        with suppress(OSError, ValueError):
            sys.stdout.write(write_json(self.metrics.to_document(log_keys())) + "\n")
