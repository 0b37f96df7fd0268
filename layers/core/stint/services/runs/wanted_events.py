"""The endpoints that want an event."""

import logging
from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from stint.domain.webhooks import StoredWebhookEndpoint

logger = logging.getLogger(__name__)


def read_wanted(endpoints: Mapping[str, bytes], kind: str) -> Iterator[str]:
    """Yield the ids of the enabled endpoints that name a type. Unreadable ones are skipped and logged."""
    for place, raw in endpoints.items():
        try:
            stored = StoredWebhookEndpoint.model_validate_json(raw)
        except ValidationError:
            logger.error("A stored webhook endpoint is no longer valid and is ignored", extra={"place": place})
            continue
        if stored.is_enabled and kind in stored.resource.event_types:
            yield stored.resource.id
