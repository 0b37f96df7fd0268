"""Metrics of a request in CloudWatch's embedded metric format.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from aws_lambda_powertools.metrics import EphemeralMetrics

NAMESPACE = "Stint"
"""Namespace of metrics without POWERTOOLS_METRICS_NAMESPACE, which each stack sets to one of its own."""

COUNT = "Count"
MILLISECONDS = "Milliseconds"


@cache
def namespace() -> str:
    """Return the namespace of the stack, as Powertools reads it from the environment."""
    return EphemeralMetrics().namespace or NAMESPACE


class EmbeddedMetrics:
    """Metrics with the dimension `service`, and the same document as from Powertools, which checks and logs each value.

    A document can have 100 metrics with 100 values each. A request has a tenth of them.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._units: dict[str, str] = {}
        self._values: dict[str, list[float]] = {}

    def add(self, name: str, value: float, unit: str = COUNT) -> None:
        self._units[name] = unit
        self._values.setdefault(name, []).append(float(value))

    def to_document(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document, which has these keys besides the metrics."""
        directive = {
            "Namespace": namespace(),
            "Dimensions": [["service"]],
            "Metrics": [{"Name": name, "Unit": unit} for name, unit in self._units.items()],
        }
        aws = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
        return {"_aws": aws, "service": self._service, **keys, **self._values}
