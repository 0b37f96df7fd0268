"""Events of S3 on objects of the inbox (docs/knowledge.md), as the rule of the default event bus passes them on."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from stint.domain.ids import TENANT, TenantName
from stint.domain.notifications.request_events import check_event
from stint.domain.schema import Request

ObjectEventType = Literal["Object Created", "Object Deleted"]

MAX_KEY = 1024
"""Longest key of an object in S3, in bytes of UTF-8."""


class ChangedObject(Request):
    """An object by its key, which S3 does not encode in these events."""

    key: Annotated[str, Field(min_length=1, max_length=MAX_KEY)]


class ObjectChange(Request):
    object: ChangedObject


class ObjectEvent(Request):
    """An object was created, replaced or deleted. The rule sets `tenant`.

    Events arrive in any order and more than once, so the type proves nothing about the object as it is.
    """

    tenant: TenantName = TENANT
    detail_type: Annotated[ObjectEventType, Field(alias="detail-type")]
    detail: ObjectChange

    @model_validator(mode="before")
    @classmethod
    def check(cls, data: Any) -> Any:
        return check_event(data)
