"""The record that ends a response with an incomplete answer."""

from stint.domain.openai.stored_responses import ResponseOutcome, ResponseRecord, StoredResponse
from stint.domain.partial_steps import PartialStep
from stint.services.responses.output_items import output_of
from stint.services.responses.streamed_items import StreamedItems


def closing_record(
    stored: StoredResponse, streamed: StreamedItems, ending: ResponseOutcome, unfinished: PartialStep | None = None
) -> ResponseRecord:
    """Return the last record of a failed or cancelled response.

    It has the streamed items that the log lacks. A call that is open in the stream keeps its output index, and unknown
    indexes before it are skipped. `unfinished` is the step that the items belong to, if it is known.
    """
    output = output_of(stored, lambda _: "")  # only the ids and output indexes of the logged items matter here
    known = {item.id for item in output.items}
    partial = [item for item in streamed.items if item.id not in known]
    skipped = max(streamed.index_of_call - output.place, 0) if output.calls.waiting else 0
    ending = ending.model_copy(update={"partial": partial})
    return ResponseRecord(skipped=skipped or None, ending=ending, unfinished=unfinished)
