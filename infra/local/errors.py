"""Faults of the local cloud that a user can mend: shown as one line, never as a stack trace."""


class LocalCloudError(Exception):
    """Says what is wrong, where, and what to do."""
