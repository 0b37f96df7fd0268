"""Jinja templates of callers, whose time and memory are bounded.

docs/decisions.md, entry 40, has the reasons.
"""
