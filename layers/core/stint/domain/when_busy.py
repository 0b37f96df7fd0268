"""The behaviour of a request while another run has its session or conversation."""

from typing import Literal

WhenBusy = Literal["reject", "enqueue", "interrupt", "merge"]
"""Refuse the request, start it after those that came before, cancel the run and start at once, or add to the run."""
