"""Check of the order of a stream's events, and that they add up to the response at its end."""

from tests.openresponses.bodies import check_distinct, check_event, require
from tests.openresponses.parts import StreamedItem
from tests.openresponses.schema import Json

BEGINNINGS = ("response.queued", "response.in_progress")
# There is no event for cancellation: the stream of a cancelled response ends like that of a failed one.
ENDINGS = {
    "response.completed": ("completed",),
    "response.incomplete": ("incomplete",),
    "response.failed": ("failed", "cancelled"),
}
CONSTANT = ("id", "object", "created_at", "model", "metadata", "tools", "previous_response_id", "store", "background")


class Stream:
    """The events of a response so far. `after` is the number of the last event before the stream, -1 for none."""

    def __init__(self, after: int = -1) -> None:
        self.next = after + 1
        self.resumed = after >= 0
        self.response: Json | None = None
        self.items: list[StreamedItem] = []
        self.failed = False
        self.ended = False

    def take(self, event: Json) -> None:
        """Check the next event. Raises Mismatch if it is malformed or out of order."""
        name = event.get("type")
        require(not self.ended, f"{name} after the end")
        require(event.get("sequence_number") == self.next, f"{name} has not number {self.next}: {event}")
        self.next += 1
        require(not self.failed or name == "response.failed", f"{name} between the error and the end")
        if self.response is None and not self.resumed:
            require(name == "response.created", f"The first event is {name}")
        if isinstance(event.get("response"), dict):
            self._check_constant(event["response"])
        check_event(event, self.response)
        self._place(event)

    def _check_constant(self, response: Json) -> None:
        first = self.response = self.response or response
        for key in CONSTANT:
            require(response.get(key) == first.get(key), f"{key} changed from {first.get(key)} to {response.get(key)}")

    def _place(self, event: Json) -> None:
        name = event["type"]
        if name == "response.created":
            require(event["sequence_number"] == 0, "Created in the middle")
            require(event["response"]["output"] == [], "Created with output")
        elif name in BEGINNINGS:
            require(not self.items, f"{name} after an item")
            status = name.removeprefix("response.")
            require(event["response"]["status"] == status, f"{name} with status {event['response']['status']}")
        elif name in ENDINGS:
            self._end(event["response"], ENDINGS[name])
        elif name == "error":
            self.failed = True
        elif not self.resumed:
            self._take_of_item(event)

    def _take_of_item(self, event: Json) -> None:
        name = event["type"]
        if name == "response.output_item.added":
            index = event["output_index"]
            require(index == len(self.items), f"Item {index} is added as number {len(self.items)}")
            self.items.append(StreamedItem(event["item"], index))
            check_distinct("Items of a stream", [each.item["id"] for each in self.items])
            return
        index = event["output_index"]
        require(0 <= index < len(self.items), f"{name} before item {index} was added")
        item = self.items[index]
        if name == "response.output_item.done":
            item.close(event)
        else:
            require(event["item_id"] == item.item["id"], f"{name} of item {event['item_id']}, not {item.item['id']}")
            item.take(event)

    def _end(self, response: Json, statuses: tuple[str, ...]) -> None:
        self.ended = True
        status = response["status"]
        require(status in statuses, f"The end's status is {status}, not one of {statuses}")
        if self.resumed:
            return
        undone = [each.item["id"] for each in self.items if each.done is None]
        require(not undone, f"Items {undone} were never done")
        output = {item["id"]: item for item in response["output"]}
        redone = status in ("completed", "incomplete")
        for each in self.items:
            if redone and each.done and each.done.get("status") == "incomplete" and each.item["id"] not in output:
                continue  # a worker died before the item was done, and the next worker created the item again
            final = output.get(each.item["id"])
            require(final == each.done, f"An item was {each.done} and is {final} in the end")
        order = [each.item["id"] for each in self.items if each.item["id"] in output]
        require(order == list(output), f"The output is {list(output)}, streamed was {order}")

    def finish(self) -> None:
        """Check that the stream is complete."""
        require(self.ended, "The stream stopped without an end")
