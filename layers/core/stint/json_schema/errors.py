"""Errors about a schema."""


class SchemaError(ValueError):
    """The schema cannot be used. The message says where and why."""
