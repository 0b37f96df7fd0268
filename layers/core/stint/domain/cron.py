"""Five-field cron expressions, translated to those of EventBridge Scheduler."""


def to_schedule_expression(expression: str) -> str:
    """Return `cron(...)` for a five-field cron expression.

    Raises InvalidRequest with the code `invalid_cron_expression`, or `unsupported_cron_expression` if Scheduler has no
    such expression.
    """
    raise NotImplementedError
