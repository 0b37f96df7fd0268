"""The `mcp` package without its server side."""

import importlib.util
import logging
import sys


def prepare_mcp() -> None:
    """Let the modules of `mcp.client` be imported alone; call this before importing one.

    The package's `__init__` imports its server and with it uvicorn, jsonschema and 170 other modules: 110 ms and 8 MB
    in a function that only ever is a client. Who imported the whole package before keeps it.
    """
    # Its log lines bear whole messages, arguments and answers, and tracebacks of what the adapter reports itself.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    if "mcp" in sys.modules:
        return
    spec = importlib.util.find_spec("mcp")
    if spec is None:
        raise ModuleNotFoundError("No module named 'mcp'")
    sys.modules["mcp"] = importlib.util.module_from_spec(spec)
