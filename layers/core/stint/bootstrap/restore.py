"""Start of a process, and its continuation from a snapshot (SnapStart), of which many processes may start."""

import importlib
import random
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TypeVar

from stint.settings import Settings

T = TypeVar("T")

MOST_TENANTS = 100
"""Maximum tenants whose services a process keeps."""


def per_tenant(make: Callable[[str], T]) -> Callable[[str], T]:
    """Return a function that makes the services of a tenant once, and keeps those of the tenants last used.

    Requests hold the services that they use, so a stream in flight loses nothing when its tenant's are dropped. What
    tenants share, such as connections, transcripts and links, is not part of them.
    """
    return lru_cache(maxsize=MOST_TENANTS)(make)


class Composition:
    """A composition's parts, in cached properties and cached functions.

    `read_settings` is called at once, and again after `forget`. What it raises stops the start of the process.
    """

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        self.read_settings = read_settings
        self.settings = read_settings()

    @cached_property
    def settings(self) -> Settings:
        """Return the settings, with the texts of the objects that large ones name. Raises SettingsError."""
        settings = self.read_settings()
        if not settings.references:
            return settings
        from stint.bootstrap.setting_objects import read_large_settings  # noqa: PLC0415 - few stacks have them

        return read_large_settings(settings)

    def forget(self) -> None:
        """Drop all parts, so that the next request makes new ones.

        With them go connections, which the other side has closed, credentials and secrets, which may have expired, and
        whatever was cached until a time that has passed.
        """
        for name, value in list(vars(self).items()):
            if isinstance(getattr(type(self), name, None), cached_property):
                delattr(self, name)
            elif hasattr(value, "cache_clear"):
                value.cache_clear()


def start(parts: Composition) -> None:
    """Read the settings of a process before its first request, and prepare it for a restore.

    Raises SettingsError, which ends the start.
    """
    _ = parts.settings
    forget_after_restore(parts)


def forget_after_restore(parts: Composition) -> None:
    """Drop the parts of a process after its restore. Only runtimes with SnapStart have the module with the hooks."""
    try:
        hooks = importlib.import_module("snapshot_restore_py")
    except ImportError:
        return
    register: Callable[..., object] = hooks.register_after_restore
    register(restore, parts)


def restore(parts: Composition) -> None:
    random.seed()  # otherwise all processes of the snapshot wait equally long before they retry
    parts.forget()
