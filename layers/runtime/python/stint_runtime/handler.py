"""Loader of the function's app by the name of its handler."""

import importlib

from stint_runtime.errors import FunctionError, InitError
from stint_runtime.exchange import App


class HandlerError(InitError):
    """The app cannot be loaded; the error has one of the managed runtime's reasons."""


def load(handler: str) -> App:
    """Import the app with the name `module.attribute` or `folder/module.attribute`. Raises HandlerError."""
    module_name, dot, attribute = handler.rpartition(".")
    if not dot:
        raise _failure("Runtime.MalformedHandlerName", f"Bad handler '{handler}': not module.attribute.")
    try:
        module = importlib.import_module(module_name.replace("/", "."))
    except BaseException as error:
        raise HandlerError(_import_error(error, module_name)) from error
    app = getattr(module, attribute, None)
    if not callable(app):
        raise _failure(
            "Runtime.HandlerNotFound", f"Handler '{attribute}' is missing in module '{module_name}' or not an ASGI app."
        )
    return app  # type: ignore[no-any-return]  # whether it is an ASGI app only shows when it is called


def _import_error(error: BaseException, module_name: str) -> FunctionError:
    reasons = {ImportError: "Runtime.ImportModuleError", SyntaxError: "Runtime.UserCodeSyntaxError"}
    reason = next((reasons[kind] for kind in reasons if isinstance(error, kind)), None)
    found = FunctionError.of(error, reason)
    message = f"Unable to import module '{module_name}': {found.message}"
    return FunctionError(found.reason, reason or found.type, message, found.stack)


def _failure(reason: str, message: str) -> HandlerError:
    return HandlerError(FunctionError(reason, reason, message))
