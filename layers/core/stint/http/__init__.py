"""HTTP: the routes, the middleware and the errors, on FastAPI."""

from stint.http.deferred_models import deferred_models, deferred_modules, without_form_parser, without_telemetry

with deferred_models(), deferred_modules(), without_form_parser(), without_telemetry():
    import fastapi
    import fastapi.telemetry._runtime  # noqa: F401 - before any module that imports a part of it
