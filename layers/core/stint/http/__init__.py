"""HTTP: the routes, the middleware and the errors, on FastAPI."""

from stint.http.deferred_imports import deferred_modules, without_form_parser, without_telemetry

with deferred_modules(), without_form_parser(), without_telemetry():
    import aws_lambda_powertools.logging  # noqa: F401 - as below, if nothing has imported it
    import fastapi
    import fastapi.telemetry._runtime  # noqa: F401 - before any module that imports a part of it
