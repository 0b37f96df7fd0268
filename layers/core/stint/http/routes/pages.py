"""The web pages: a home page, and the API reference.

Both show the URL of the request, which its Host header has. So it is matched against a pattern and escaped before it is
written, and a policy allows no script but that of the reference.
"""

import re
from collections.abc import Callable, Coroutine
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from stint.apis.agents import AgentsServices
from stint.http.dependencies import AgentsServicesDep
from stint.http.requests import LazyRoute
from stint.http.scopes import requires

STATIC = Path(__file__).parents[1] / "static"
TYPES = {"reference.css": "text/css", "reference.js": "text/javascript"}
HOST = re.compile(r"[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:]{2,45}\](:[0-9]{1,5})?")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "vary": "accept",
}
KEPT = {"cache-control": "max-age=300"}
"""The cache policy of files that are part of the release."""

HOME = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Stint</title>
  <link rel="icon" href="data:,">
  <link rel="stylesheet" href="{path}/docs/reference.css">
</head>
<body>
  <h1>Stint</h1>
  <p>A stateful agents API: Llama Stack's Agents API (v0.2.12) and OpenAI's Responses API.</p>
  <table><tbody>
    <tr><th>llama-stack-client</th><td><code>base_url="{url}"</code></td></tr>
    <tr><th>openai</th><td><code>base_url="{url}/v1"</code></td></tr>
    <tr><th>openai, at Llama Stack's address</th><td><code>base_url="{url}/v1/openai/v1"</code></td></tr>
    <tr><th>Models</th><td>{models}</td></tr>
  </tbody></table>
  <p><a href="{path}/docs">API reference</a> · <a href="{path}/v1/openapi.json">OpenAPI document</a></p>
</body>
</html>
"""

WEIGHT = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")

Preference = tuple[float, int]
"""The weight of a media type, and the precision of its range: 2 for the type, 1 for `type/*`, 0 for `*/*`."""

NOT_ACCEPTED: Preference = (0.0, -1)


class PageRoute(LazyRoute):
    """A route that answers HEAD like GET, without the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            response = await handle(request)
            if request.method == "HEAD":
                response.body = b""
            return response

        return answer


router = APIRouter(include_in_schema=False, route_class=PageRoute)
METHODS = ["GET", "HEAD"]


@router.api_route("/", methods=METHODS)
@requires("use")
async def get_home(request: Request, services: AgentsServicesDep) -> Response:
    """Show the API's URL and models, as JSON for clients that prefer it to HTML."""
    url, models = base_url_of(request, "/"), await language_models(services)
    if prefers(",".join(request.headers.getlist("accept")), "application/json", "text/html"):
        addresses = {"llama_stack": url, "openai": [f"{url}/v1", f"{url}/v1/openai/v1"]}
        links = {"docs": f"{url}/docs", "openapi": f"{url}/v1/openapi.json"}
        return JSONResponse({"name": "Stint", "base_urls": addresses, "models": models, **links}, headers=HEADERS)
    listed = ", ".join(f"<code>{escape(model)}</code>" for model in models)
    path = escape(base_path_of(request, "/"))
    return HTMLResponse(HOME.format(path=path, url=escape(url), models=listed), headers=HEADERS)


@router.api_route("/docs", methods=METHODS)
@requires("use")
async def get_docs() -> Response:
    """Show the API reference, which reads the OpenAPI document."""
    return HTMLResponse((STATIC / "docs.html").read_text(), headers=HEADERS | KEPT)


@router.api_route("/docs/reference.css", methods=METHODS)
@requires("use")
async def get_style() -> Response:
    return asset("reference.css")


@router.api_route("/docs/reference.js", methods=METHODS)
@requires("use")
async def get_script() -> Response:
    return asset("reference.js")


async def language_models(services: AgentsServices) -> list[str]:
    """Return the ids of the models that answer, which those of embeddings do not."""
    return [model.identifier for model in await services.registry.list_models() if model.model_type == "llm"]


def asset(name: str) -> Response:
    return Response((STATIC / name).read_text(), media_type=TYPES[name], headers=HEADERS | KEPT)


def base_path_of(request: Request, path: str) -> str:
    """Return the part of a request's path before `path`: a stage, or a custom domain's base path, without quotes."""
    context = request.scope.get("aws.event", {}).get("requestContext", {})
    asked = str(context.get("path") or request.scope["path"])
    return quote(asked.rstrip("/").removesuffix(path.rstrip("/")), safe="/%")  # a base path may have "$" and "'"


def base_url_of(request: Request, path: str) -> str:
    """Return the API's URL. It means itself also in HTML, in JSON and, between double quotes, in a shell."""
    host, scheme = request.headers.get("host", ""), request.headers.get("x-forwarded-proto", request.url.scheme)
    if not HOST.fullmatch(host) or scheme not in ("http", "https"):
        return base_path_of(request, path)
    return f"{scheme}://{host}{base_path_of(request, path)}"


def prefers(accept: str, media_type: str, usual: str) -> bool:
    """Return whether a client prefers a media type to the default one.

    If both have the same weight, the more precise range wins: `application/json, */*` asks for JSON
    (RFC 9110, section 12.5.1).
    """
    wanted = preference_of(accept, media_type)
    return wanted > NOT_ACCEPTED and wanted > preference_of(accept, usual)


def preference_of(accept: str, media_type: str) -> Preference:
    """Return the preference for a media type, from the range that matches it most precisely."""
    kind = media_type.partition("/")[0]
    names = ("*/*", f"{kind}/*", media_type)
    found = [NOT_ACCEPTED]
    for part in accept.lower().split(","):
        name, *parameters = (each.strip() for each in part.split(";"))
        weight = weight_of(parameters)
        if name in names and weight is not None:
            found.append((weight, names.index(name)))
    exactness = max(each[1] for each in found)
    weight = max(each[0] for each in found if each[1] == exactness)
    return (weight, exactness) if weight else NOT_ACCEPTED


def weight_of(parameters: list[str]) -> float | None:
    """Return the weight (0 to 1) among the parameters of a range; None if it is malformed."""
    weights = [value.strip() for name, _, value in (each.partition("=") for each in parameters) if name.strip() == "q"]
    if not weights:
        return 1.0
    return float(weights[0]) if WEIGHT.fullmatch(weights[0]) else None
