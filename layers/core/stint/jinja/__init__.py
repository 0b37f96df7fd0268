"""Jinja templates of callers, whose time and memory are bounded."""
