"""The `mcp` package without its server side."""

import importlib.util
import logging
import sys


def prepare_mcp() -> None:
    """Make the modules of `mcp.client` importable alone. Call this before importing one.

    The package's `__init__` imports its server, and so uvicorn, jsonschema and 170 other modules: 110 ms and 8 MB in a
    function that is only a client. It has no effect if the whole package is already imported.
    """
    # Its log lines contain whole messages, with arguments and results, and tracebacks of reported errors.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    if "mcp" in sys.modules:
        return
    spec = importlib.util.find_spec("mcp")
    if spec is None:
        raise ModuleNotFoundError("No module named 'mcp'")
    sys.modules["mcp"] = importlib.util.module_from_spec(spec)
