"""What callers have registered, a small partition that is read whole."""

from collections.abc import Mapping
from typing import Literal, TypeVar

from stint.domain.errors import Conflict, NotFound
from stint.domain.schema import Schema
from stint.store import keys
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.table import Table

S = TypeVar("S", bound=Schema)
Kind = Literal["model", "shield", "tool_group"]
NAMES: Mapping[str, str] = {"model": "Model", "shield": "Shield", "tool_group": "Toolgroup"}


class Registrations:
    """Models, shields and toolgroups by kind and identifier."""

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    def create(self, tenant: str, kind: Kind, identifier: str, document: Schema) -> None:
        """Store a registration; an equal one may stand there already. Raises Conflict when another one does."""
        key = keys.registration(tenant, kind, identifier)
        try:
            self._documents.put_new(key._asdict(), document, keys.registration_blobs(tenant))
        except ConditionFailed as refused:
            found = self._documents.read([refused.item] if refused.item else [])
            if any(type(document).model_validate_json(raw) == document for raw in found):
                return
            raise Conflict(
                f"{NAMES[kind]} {identifier!r} is registered already: unregister it first, or choose another name.",
                code=f"{NAMES[kind].lower()}_exists",
            ) from None

    def read(self, tenant: str) -> "dict[tuple[str, str], bytes]":
        """Read every registration: its JSON by kind and identifier."""
        items = list(self._table.query(keys.registrations(tenant)))
        documents = self._documents.read(items)
        return {keys.split_registration(item["sk"]): raw for item, raw in zip(items, documents, strict=True)}

    def delete(self, tenant: str, kind: Kind, identifier: str) -> None:
        """Delete a registration. Raises NotFound when there is none."""
        if not self._table.delete_existing(keys.registration(tenant, kind, identifier)):
            raise NotFound(NAMES[kind], identifier)
