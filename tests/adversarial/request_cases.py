"""Requests with long lists, each element of which could make the server read, fetch or convert something."""

from tests.adversarial.case import Case, case, post


@case
def references_to_items_of_many_responses() -> Case:
    answer = yield post("/v1/responses", {"model": "scripted/demo", "input": "say: ok"})
    suffix = answer.json()["output"][0]["id"].partition("_")[2][32:]
    for count in (500, 9_999):
        references = [{"type": "item_reference", "id": f"msg_{n:032x}{suffix}"} for n in range(count)]
        body = {"model": "scripted/demo", "input": [*references, {"role": "user", "content": "go"}]}
        for path in ("/v1/responses", "/v1/responses/input_tokens"):
            answer = yield post(path, body)
            assert answer.status == 400, answer.body[:500]
