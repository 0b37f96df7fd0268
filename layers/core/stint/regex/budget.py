"""A bound on the work that one text, pattern or schema may cause, counted in steps instead of seconds."""


class OutOfSteps(Exception):
    """The work needs more steps than it was given."""


class Budget:
    """A number of steps that is left; one step is about a microsecond of Python."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps away. Raises OutOfSteps when there are not enough."""
        self.left -= steps
        if self.left < 0:
            raise OutOfSteps
