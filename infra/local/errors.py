"""Errors of the local cloud that a user can fix. They are shown as one line, never as a stack trace."""


class LocalCloudError(Exception):
    """An error whose message describes the problem, its place, and the solution."""
