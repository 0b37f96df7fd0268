"""The function's app, found the way Lambda names handlers."""

import importlib

from stint_runtime.errors import FunctionError
from stint_runtime.exchange import App


class HandlerError(Exception):
    """The app can't be loaded; `error` says why, with the reasons that the managed runtime uses."""

    def __init__(self, error: FunctionError) -> None:
        super().__init__(error.message)
        self.error = error


def load(handler: str) -> App:
    """Import the app that `module.attribute` or `folder/module.attribute` names; raises HandlerError."""
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
            "Runtime.HandlerNotFound", f"Handler '{attribute}' is missing in module '{module_name}' or no ASGI app."
        )
    return app  # type: ignore[no-any-return]  # what an ASGI app is shows when it is called


def _import_error(error: BaseException, module_name: str) -> FunctionError:
    reasons = {ImportError: "Runtime.ImportModuleError", SyntaxError: "Runtime.UserCodeSyntaxError"}
    reason = next((reasons[kind] for kind in reasons if isinstance(error, kind)), None)
    found = FunctionError.of(error, reason)
    message = f"Unable to import module '{module_name}': {found.message}"
    return FunctionError(found.reason, reason or found.type, message, found.stack)


def _failure(reason: str, message: str) -> HandlerError:
    return HandlerError(FunctionError(reason, reason, message))
