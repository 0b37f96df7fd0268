"""Runs ministack on a listening socket that the parent hands over, and stops when the parent is gone.

Started with the interpreter of `.venv-ministack` and a file descriptor as its only argument: of this project it
imports what needs the standard library alone. Standard input is a pipe that the parent holds open: its end means that
the parent ended, however it ended, and the SIGTERM that follows lets ministack save (hypercorn then runs its shutdown).
"""

import importlib
import os
import runpy
import signal
import sys
import threading

from infra.local.web_pages import Receive, Scope, Send, refuse_web_pages


@refuse_web_pages
async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve ministack, which by itself allows every origin."""
    await importlib.import_module("ministack.app").app(scope, receive, send)


def stop_at_end_of_input() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    descriptor = sys.argv[1]
    threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    sys.argv = ["hypercorn", "infra.local.engine_process:app", "--bind", f"fd://{descriptor}", "--workers", "0"]
    sys.argv += ["--keep-alive", "75", "--graceful-timeout", "2", "--log-level", "WARNING"]
    runpy.run_module("hypercorn", run_name="__main__")


if __name__ == "__main__":
    main()
