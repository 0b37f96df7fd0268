"""The port to the sessions of automations. The package of OpenAI's Agents API implements it.

The core does not know the API's request for a session, which a target has as JSON.
"""

from collections.abc import Awaitable, Callable, Set
from typing import Protocol

from stint.domain.openai.automations import ExistingSessionTarget, NewSessionTarget
from stint.services.runs.run_handle import RequestContext

IsOwn = Callable[[Set[str]], Awaitable[bool]]
"""A function that returns whether the automation has sent one of the messages with some ids."""


class PendingDelivery(Exception):
    """A message that the session got at an earlier run still waits in line."""


class Targets(Protocol):
    """The sessions of a tenant that automations begin, or send messages to."""

    async def check(self, target: NewSessionTarget | ExistingSessionTarget) -> None:
        """Check a target for the current caller as its run will be checked, and create nothing.

        Raises:
            InvalidRequest: the request of a session is invalid, or names an unknown vault.
            Forbidden: the caller may not use the model, or the session.
            NotFound: there is no such agent or session.
        """

    async def create_session(self, target: NewSessionTarget, context: RequestContext) -> str:
        """Create a session with its input, and return its id. A repeated attempt of the context returns the same one.

        Raises:
            NotFound: the saved agent was deleted.
            StintError: as the API's route does.
        """

    async def send(self, target: ExistingSessionTarget, context: RequestContext, is_own: IsOwn) -> None:
        """Store the instructions as a message of the session, unless an earlier attempt of the context did.

        Its id is the `object_id` of the attempt. `is_own` is called with the ids of the messages in line, if there are
        any.

        Raises:
            PendingDelivery: a message of an earlier run still waits in line.
            NotFound: there is no such session.
            StintError: as the API's route does.
        """
