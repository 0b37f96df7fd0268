import pytest

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.schedules import make_schedules, partition_of, queue_arn_of
from stint.domain.errors import NotSupported, StoreUnavailable
from stint.domain.schedules import Schedule, Schedules
from stint.settings import Settings


@pytest.mark.parametrize(
    ("url", "region", "role_arn", "queue_arn"),
    [
        (
            "https://sqs.eu-west-1.amazonaws.com/123456789012/stint-WorkQueue-1A",
            "eu-west-1",
            "arn:aws:iam::123456789012:role/stint-ScheduleRole",
            "arn:aws:sqs:eu-west-1:123456789012:stint-WorkQueue-1A",
        ),
        (
            "https://sqs.us-gov-west-1.amazonaws.com/123456789012/work",
            "us-gov-west-1",
            "arn:aws-us-gov:iam::123456789012:role/sender",
            "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:work",
        ),
        ("http://127.0.0.1:4566/000000000000/work", "us-east-1", "", "arn:aws:sqs:us-east-1:000000000000:work"),
    ],
)
def test_schedules_have_the_queue_of_the_settings_as_their_target(
    url: str, region: str, role_arn: str, queue_arn: str
) -> None:
    assert queue_arn_of(url, region, partition_of(role_arn)) == queue_arn


@pytest.mark.parametrize(
    "schedules", [make_schedules(Settings()), Adapters(Settings(schedule_group="group")).schedules]
)
async def test_a_process_without_schedules_creates_none_and_says_of_none_that_it_is_deleted(
    schedules: Schedules,
) -> None:
    with pytest.raises(NotSupported, match="STINT_SCHEDULE_GROUP"):
        await schedules.create(Schedule("name", "at(2027-01-01T00:00:00)", "UTC", "{}"))
    with pytest.raises(StoreUnavailable):
        await schedules.delete("name")
