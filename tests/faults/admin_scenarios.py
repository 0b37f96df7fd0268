"""Administration: the revocation of an API key, a stop, and the erasure of an end user."""

from tests.faults.api import Api
from tests.faults.knowledge_creations import FILE
from tests.faults.scenario import LATER, Finding, Findings, Scenario

USER = {"X-Stint-User": "ann"}
PLACE = "/v1/admin/users/ann"
ATTEMPTS = 3
STOPS = "/v1/admin/stop"
STOP = {"kind": "session", "id": "01a2083c-2e98-7000-89fb-105038b2b280"}


class KeyRevocation(Scenario):
    """An API key is revoked. It stays, with the time of its revocation."""

    name = "revoke-key"

    def prepare(self, api: Api) -> None:
        self.path = f"/v1/admin/keys/{api.make('/v1/admin/keys', {'name': 'mine'})['id']}"

    def act(self, api: Api) -> None:
        self.reply = api.delete(self.path)

    def check(self, api: Api) -> Findings:
        found = api.read(self.path)
        if self.reply.ok and not found.get("revoked_at"):
            yield Finding("lost", "an announced revocation")
        again = api.delete(self.path)
        if not again.ok or not again.body.get("revoked_at"):
            yield Finding("stuck", f"the repeated revocation: {again.status} {again.text[:200]}")
        if found.get("revoked_at") not in (None, again.body.get("revoked_at")):
            yield Finding("lost", "the time of a revocation")


class StopAddition(Scenario):
    """A session is stopped."""

    name = "add-stop"

    def act(self, api: Api) -> None:
        self.reply = api.post(STOPS, STOP)

    def check(self, api: Api) -> Findings:
        listed = api.read(STOPS)["data"]
        again = api.post(STOPS, STOP)
        if self.reply.ok and listed != [self.reply.body]:
            yield Finding("lost", f"an announced stop: {listed}")
        if not again.ok or api.read(STOPS)["data"] != [again.body]:
            yield Finding("stuck", f"the repeated stop: {again.status} {again.text[:200]}")
        if listed and listed != [again.body]:
            yield Finding("doubled", "a stop")


class StopRemoval(Scenario):
    """The stop of a session is lifted."""

    name = "lift-stop"

    def prepare(self, api: Api) -> None:
        api.make(STOPS, STOP)

    def act(self, api: Api) -> None:
        self.reply = api.delete(f"{STOPS}/{STOP['kind']}/{STOP['id']}")

    def check(self, api: Api) -> Findings:
        if self.reply.ok and (listed := api.read(STOPS)["data"]):
            yield Finding("lost", f"the announced removal of a stop: {listed}")
        again = api.delete(f"{STOPS}/{STOP['kind']}/{STOP['id']}")
        if not again.ok or api.read(STOPS)["data"]:
            yield Finding("stuck", f"the repeated removal: {again.status} {again.text[:200]}")


class UserErasure(Scenario):
    """Everything of an end user is erased: a conversation, a response and a file."""

    name = "erase-user"
    has_work = True

    def prepare(self, api: Api) -> None:
        conversation = api.make("/v1/conversations", {}, headers=USER)["id"]
        response = api.make("/v1/responses", {"model": "scripted/demo", "input": "say: one"}, headers=USER)["id"]
        file = api.make("/v1/files", None, files={"file": FILE}, data={"purpose": "assistants"}, headers=USER)["id"]
        self.paths = [f"/v1/conversations/{conversation}", f"/v1/responses/{response}", f"/v1/files/{file}"]

    def act(self, api: Api) -> None:
        self.reply = api.delete(PLACE)

    def check(self, api: Api) -> Findings:
        self.cloud.work_off(LATER, redeliver=True)
        if self.reply.ok and self.reply.body["complete"]:
            yield from self._check_erased(api)
        for _ in range(ATTEMPTS):
            again = api.delete(PLACE)
            self.cloud.work_off(LATER, redeliver=True)
            if again.ok and again.body["complete"]:
                break
        else:
            yield Finding("stuck", f"the repeated erasure: {again.status} {again.text[:200]}")
        yield from self._check_erased(api)

    def _check_erased(self, api: Api) -> Findings:
        left = [path for path in self.paths if api.get(path).status != 404]
        if left:
            yield Finding("lost", f"the erasure of {left}")
        if listed := api.read(PLACE)["data"]:
            yield Finding("stuck", f"the entries of an erased user: {listed}")


ADMINISTRATION: list[type[Scenario]] = [KeyRevocation, StopAddition, StopRemoval, UserErasure]
