"""The use cases of responses: begun, run, read, left to the worker and followed."""
