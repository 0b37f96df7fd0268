"""Program that runs ministack on a listening socket from its parent, and stops when the parent has ended.

It is started with the interpreter of `.venv-ministack`, so it imports only those modules of this project that need
nothing but the standard library. Its only argument is a file descriptor. Standard input is a pipe that the parent holds
open: its end means that the parent has ended, for whatever reason. SIGTERM then makes hypercorn run its shutdown, in
which ministack saves its state.
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
    """Serve ministack with a check of Host and Origin; ministack itself allows every origin."""
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
