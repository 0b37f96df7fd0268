"""Log lines of modules for which the app sets up no handler. Managed Instances require JSON."""

import logging

from stint_runtime.context import current_context
from stint_runtime.errors import log


class JsonHandler(logging.Handler):
    """Write a line as JSON, with the ids of the invocation in whose task it is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        context = current_context.get()
        fields: dict[str, object] = {"logger": record.name}
        if context:
            fields |= {"requestId": context.aws_request_id, "xray_trace_id": context.xray_trace_id}
        if record.exc_info and record.exc_info[1]:
            fields["exception"] = logging.Formatter().formatException(record.exc_info)
        log(record.levelname, record.getMessage(), **fields)


def install_json_logs() -> None:
    """Write warnings and errors of all modules as JSON, except those for which the app sets up a handler."""
    handler = JsonHandler(logging.WARNING)
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").addHandler(handler)  # without one, it gets a handler that drops its lines
    logging.lastResort = handler
