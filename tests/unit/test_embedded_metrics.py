import json
import time
from typing import Any

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from stint.embedded_metrics import MILLISECONDS, EmbeddedMetrics, namespace

KEYS: dict[str, Any] = {"request_id": "r", "cold_start": True, "tenant": "default"}


def test_the_document_is_that_of_powertools() -> None:
    theirs, ours = EphemeralMetrics(service="turns", namespace=namespace()), EmbeddedMetrics("turns")
    for name, value in (("Turns", 1), ("InputTokens", 7), ("Turns", 0.5), ("Dollars", 0.000032)):
        theirs.add_metric(name, MetricUnit.Count, value)
        ours.add(name, value)
    theirs.add_metric("TimeToFirstEvent", MetricUnit.Milliseconds, 12.5)
    ours.add("TimeToFirstEvent", 12.5, MILLISECONDS)
    for key, value in KEYS.items():
        theirs.add_metadata(key, value)

    expected, document = theirs.serialize_metric_set(), ours.to_document(KEYS)

    assert isinstance(document["_aws"]["Timestamp"], int)
    assert 0 <= time.time() * 1000 - document["_aws"]["Timestamp"] < 60_000
    document["_aws"]["Timestamp"] = expected["_aws"]["Timestamp"]
    assert json.dumps(document) == json.dumps(expected)
