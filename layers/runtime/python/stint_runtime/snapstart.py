"""SnapStart: the hooks before and after the snapshot, and the wait for the restore.

The endpoints are those of AWS's own runtime client (awslambdaric, `on_init_complete`). The hooks are registered with
`snapshot_restore_py`, which is part of the managed runtime.
"""

import sys

from stint_runtime.client import RuntimeApi
from stint_runtime.errors import FunctionError, log_failure

_BEFORE_FAILED = 64
_AFTER_FAILED = 65


async def wait_for_restore(api: RuntimeApi) -> None:
    """Run the hooks before the snapshot, wait for the restore, and run the hooks after it.

    A failing hook ends the process.
    """
    try:
        _run_hooks("get_before_snapshot", last_first=True)
        await api.restored()
    except Exception as exception:  # noqa: BLE001  # a hook may raise anything
        error = FunctionError.of(exception, "Runtime.BeforeSnapshotError")
        log_failure(error, None)
        await api.fail_init(error)
        # The exit codes of awslambdaric.
        sys.exit(_BEFORE_FAILED)
    try:
        _run_hooks("get_after_restore")
    except Exception as exception:  # noqa: BLE001  # a hook may raise anything
        error = FunctionError.of(exception, "Runtime.AfterRestoreError")
        log_failure(error, None)
        await api.fail_restore(error)
        sys.exit(_AFTER_FAILED)


def _run_hooks(registry: str, *, last_first: bool = False) -> None:
    module = sys.modules.get("snapshot_restore_py")
    hooks = list(getattr(module, registry)()) if module else []
    for function, arguments, keywords in reversed(hooks) if last_first else hooks:
        function(*arguments, **keywords)
