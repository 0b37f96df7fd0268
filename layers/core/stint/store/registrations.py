"""Registrations, a small partition that is read whole.

A tenant has few of them, and most requests need several, so one Query reads all and the use case remembers them for
some seconds. A registration is replaced or deleted only as it was read: the random `nonce` of its record, which each
write makes anew, is the condition. So of two requests that change the same one, the second is told (409) and no check
that was made on an older version counts for a newer one.

    found           create an equal one            create a different one   mark            delete
    none            stored                         stored                   404             404
    equal           unchanged; replaced if it      -                        replaced        deleted, if `check` allows
                    lacks a mark
    different       -                              409                      409             deleted, if `check` allows
    replaced since  409 if a mark had to be added  409                      409             the new one stays
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal, TypeVar

from stint.domain.errors import Conflict, NotFound, StintError, StoreUnavailable
from stint.domain.llama_stack.registrations import RegistrationMarks, marks_of, without_marks
from stint.domain.schema import Schema
from stint.store import keys
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.table import Table

logger = logging.getLogger(__name__)
S = TypeVar("S", bound=Schema)
Kind = Literal["model", "shield", "tool_group", "removed_tool_group"]
"""The kind of a registration. A removed toolgroup is a built-in one that was unregistered."""
NAMES: Mapping[Kind, str] = {
    "model": "Model",
    "shield": "Shield",
    "tool_group": "Toolgroup",
    "removed_tool_group": "Toolgroup",
}


class Registrations:
    """Registered models, shields and toolgroups by kind and identifier."""

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    async def create(self, tenant: str, kind: Kind, identifier: str, document: Schema) -> None:
        """Store a registration, unless an equal one exists. One that lacks only marks is replaced.

        Raises Conflict if a different one exists.
        """
        key = keys.registration(tenant, kind, identifier)
        try:
            await self._documents.put_new(key._asdict(), document, keys.registration_blobs(tenant))
        except ConditionFailed as refused:
            found = await self._documents.read([refused.item] if refused.item else [])
            if any(_is(document, raw) for raw in found):
                if not all(_has_marks(document, raw) for raw in found):
                    await self._replace(key, document, refused.found, keys.registration_blobs(tenant))
                return
            raise Conflict(
                f"{NAMES[kind]} {identifier!r} is already registered. Unregister it first, or choose another name.",
                code=f"{NAMES[kind].lower()}_exists",
            ) from None

    async def mark(self, tenant: str, kind: Kind, identifier: str, document: Schema) -> None:
        """Replace a registration by the same one with a mark.

        Raises:
            NotFound: there is no such registration.
            Conflict: it is another one by now.
        """
        key = keys.registration(tenant, kind, identifier)
        item = await self._table.get(key) if keys.is_storable(key) else None
        if item is None:
            raise NotFound(NAMES[kind], identifier)
        [raw] = await self._documents.read([item])
        if not _is(document, raw):
            raise changed(identifier)
        await self._replace(key, document, item, keys.registration_blobs(tenant))

    async def _replace(self, key: keys.Key, document: Schema, item: Item, prefix: str) -> None:
        """Replace a record that was read, and delete its blob. Raises Conflict if it is another one by now."""
        values = {":nonce": item["nonce"]}
        try:
            await self._documents.put_new(key._asdict(), document, prefix, condition="nonce = :nonce", values=values)
        except ConditionFailed:
            raise changed(keys.split_registration(key.sk)[1]) from None
        with suppress(StoreUnavailable):  # nothing refers to it any more
            await self._documents.delete_blob(item)

    async def read(self, tenant: str) -> "dict[tuple[str, str], bytes]":
        """Return the JSON of all registrations by kind and identifier. Unreadable ones are skipped and logged."""
        items = [item async for item in self._table.query(keys.registrations(tenant))]
        try:
            documents: list[bytes | None] = [*await self._documents.read(items)]
        except StoreUnavailable:
            raise
        # One registration that cannot be read must not disable all others of the tenant.
        except StintError:
            documents = [await self._read_one(item) for item in items]
        found = zip(items, documents, strict=True)
        return {keys.split_registration(item["sk"]): raw for item, raw in found if raw is not None}

    async def _read_one(self, item: Item) -> bytes | None:
        try:
            return (await self._documents.read([item]))[0]
        except StoreUnavailable:
            raise
        except StintError as error:
            extra = {"registration": item["sk"], "error": error.message}
            logger.error("A stored registration cannot be read and is ignored. Register it again", extra=extra)
            return None

    async def delete(
        self, tenant: str, kind: Kind, identifier: str, check: Callable[[RegistrationMarks], None]
    ) -> None:
        """Delete a registration, and its blob if it has one. What `check` raises for its marks prevents that.

        A registration that replaces it meanwhile stays, as if it had been registered afterwards. Raises NotFound.
        """
        key = keys.registration(tenant, kind, identifier)
        item = await self._table.get(key) if keys.is_storable(key) else None
        if item is None:
            raise NotFound(NAMES[kind], identifier)
        check(_read_marks(await self._read_one(item)))
        # What `check` allowed is the registration that was read.
        await self._table.delete(key, condition="nonce = :nonce", values={":nonce": item["nonce"]})
        with suppress(StoreUnavailable):  # it is unregistered anyway, and nothing refers to its blob
            await self._documents.delete_blob(item)


def changed(identifier: str) -> Conflict:
    return Conflict(f"{identifier!r} was registered anew meanwhile. Try again.", code="registration_changed")


def _is(document: Schema, raw: bytes) -> bool:
    """Return whether a stored registration equals a document, whoever made it. One that is no longer valid does not."""
    try:
        return without_marks(type(document).model_validate_json(raw)) == without_marks(document)
    except ValueError:
        return False


def _has_marks(document: Schema, raw: bytes) -> bool:
    """Return whether a stored registration has the marks of a document."""
    stored, marks = _read_marks(raw), marks_of(document)
    return (stored.override or not marks.override) and (stored.belongs_to_admin() or not marks.belongs_to_admin())


def _read_marks(raw: bytes | None) -> RegistrationMarks:
    """Return the marks of a stored registration. One that cannot be read belongs to an admin."""
    if raw is not None:
        with suppress(ValueError):
            return RegistrationMarks.model_validate_json(raw)
    # What cannot be read may be an admin's: only an admin may remove it.
    return RegistrationMarks(override=True)
