"""Jinja templates of callers, whose time and memory are bounded.

docs/decisions.md, entry 36, has the reasons.
"""
