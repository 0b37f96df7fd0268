"""A process with the client of October 2024. It reads calls as lines of JSON, and writes a line with each outcome."""

import json
import sys
from collections.abc import Iterable
from functools import reduce
from typing import Any

from llama_stack_client import APIStatusError, LlamaStackClient


def plain(value: Any) -> Any:
    """Return what the client returned as JSON. A stream is read to its end."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return [plain(part) for part in iterate(value)]


def iterate(value: Iterable[Any]) -> Iterable[Any]:
    return value


def methods_of(part: Any, path: str = "") -> Iterable[str]:
    """Yield the names of the methods of a client's resources, or of a part of them."""
    for name in dir(part):
        if name.startswith(("_", "with_")):
            continue
        value = getattr(part, name)
        if type(value).__module__.startswith("llama_stack_client.resources"):
            yield from methods_of(value, f"{path}{name}.")
        elif path and callable(value):
            yield f"{path}{name}"


def call(client: LlamaStackClient, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        if method == "":
            return {"returned": sorted(methods_of(client))}
        function: Any = reduce(getattr, method.split("."), client)
        return {"returned": plain(function(**arguments))}
    except APIStatusError as error:
        return {"status": error.status_code, "body": error.body, "headers": dict(error.response.headers)}
    except Exception as error:  # noqa: BLE001 - the test shows it
        return {"raised": f"{type(error).__name__}: {error}"}


def main(url: str) -> None:
    clients = {strict: LlamaStackClient(base_url=url, _strict_response_validation=strict) for strict in (False, True)}
    for line in sys.stdin:
        given = json.loads(line)
        outcome = call(clients[given["strict"]], given["method"], given["arguments"])
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
