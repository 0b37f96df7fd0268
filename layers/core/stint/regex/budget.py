"""A limit on the work for one text, pattern or schema, counted in steps instead of seconds."""


class StepLimitExceeded(Exception):
    """The work needs more steps than its budget has."""


class Budget:
    """The number of steps left. One step takes about a microsecond in Python."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Subtract steps. Raises StepLimitExceeded if too few are left."""
        # Steps, because seconds would make the same request fail on a busy machine and succeed on an idle one.
        self.left -= steps
        if self.left < 0:
            raise StepLimitExceeded
