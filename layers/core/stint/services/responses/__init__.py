"""The use cases of responses."""
