"""The record that ends a response before its answer is complete."""

from stint.domain.openai.stored_responses import ResponseOutcome, ResponseRecord, StoredResponse
from stint.services.responses.output_items import output_of
from stint.services.responses.streamed_items import StreamedItems


def closing_record(stored: StoredResponse, streamed: StreamedItems, ending: ResponseOutcome) -> ResponseRecord:
    """Return the record with which a response fails or is cancelled.

    It holds the items that the stream has shown and the log does not have. A call that the stream shows as open keeps
    its place: the places before it that the log does not know are skipped.
    """
    output = output_of(stored, lambda _: "")  # of what the log holds, only the ids and places count here
    known = {item.id for item in output.items}
    partial = [item for item in streamed.items if item.id not in known]
    skipped = max(streamed.index_of_call - output.place, 0) if output.calls.waiting else 0
    return ResponseRecord(skipped=skipped or None, ending=ending.model_copy(update={"partial": partial}))
