import json
from collections.abc import Iterator

import pytest
from moto import mock_aws

from stint.domain.errors import StintError
from stint.domain.tasks import DeletionTask, ResponseTask
from stint.store.clients import make_sqs
from stint.store.messaging import SqsQueue


@pytest.fixture(autouse=True)
def aws() -> Iterator[None]:
    with mock_aws():
        yield


async def test_a_task_arrives_as_its_json() -> None:
    sqs = make_sqs()
    url = sqs.create_queue(QueueName="work")["QueueUrl"]
    task = ResponseTask(tenant="acme", response_id="resp_1")

    await SqsQueue(make_sqs, url).send(task)

    [message] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert json.loads(message["Body"]) == {"kind": "response", "tenant": "acme", "response_id": "resp_1"}


@pytest.mark.parametrize(
    "task",
    [
        DeletionTask(kind="delete_upload", tenant="acme", upload_id="upload_1"),
        ResponseTask(tenant="acme", response_id="resp_1", delay_seconds=60),
    ],
)
async def test_a_task_with_a_delay_is_delivered_later(task: DeletionTask | ResponseTask) -> None:
    sqs = make_sqs()
    url = sqs.create_queue(QueueName="work")["QueueUrl"]

    await SqsQueue(make_sqs, url).send(task)

    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessagesDelayed"])
    assert counts["Attributes"] == {"ApproximateNumberOfMessagesDelayed": "1"}


async def test_a_received_message_can_be_made_visible_before_its_timeout() -> None:
    sqs = make_sqs()
    url = sqs.create_queue(QueueName="work", Attributes={"VisibilityTimeout": "900"})["QueueUrl"]
    queue = SqsQueue(make_sqs, url)
    await queue.send(ResponseTask(tenant="acme", response_id="resp_1"))
    [message] = sqs.receive_message(QueueUrl=url)["Messages"]

    await queue.change_visibility_timeout(message["ReceiptHandle"], 0)

    [again] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert again["MessageId"] == message["MessageId"]


async def test_a_queue_makes_its_client_at_first_use_and_once() -> None:
    made = []
    url = make_sqs().create_queue(QueueName="work")["QueueUrl"]
    queue = SqsQueue(lambda: made.append(make_sqs()) or made[-1], url)  # type: ignore[func-returns-value]  # appends, then gives
    before = len(made)

    for _ in range(2):
        await queue.send(ResponseTask(tenant="acme", response_id="resp_1"))

    assert (before, len(made)) == (0, 1)


async def test_a_queue_that_refuses_is_told_in_the_words_of_the_domain() -> None:
    queue = SqsQueue(make_sqs, "https://sqs.us-east-1.amazonaws.com/123456789012/nowhere")

    with pytest.raises(StintError, match="The queue refused the request"):
        await queue.send(ResponseTask(tenant="acme", response_id="resp_1"))
