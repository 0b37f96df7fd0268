"""Runtime that serves an ASGI app on AWS Lambda's managed Python runtimes and streams its responses.

docs/decisions.md, entry 61, has the reasons.
"""
