"""What is wrong with a schema, and where."""


class SchemaError(ValueError):
    """A schema cannot be used; the message says where and why."""
