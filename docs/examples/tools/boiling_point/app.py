"""A tool. The event has the model's arguments; the model gets the return value."""

from typing import Any

CELSIUS = {"polyjuice": -100, "water": 100}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Return the boiling point of a liquid. A repeated call has the same idempotency key."""
    liquid = str(event["liquid"]).lower()
    if liquid not in CELSIUS:
        raise ValueError(f"no boiling point is known of {liquid}; known are: {', '.join(sorted(CELSIUS))}")
    celsius = event.get("celsius", True)
    print(f"call {context.client_context.custom['idempotency_key']}: {liquid}")
    return {
        "liquid": liquid,
        "boiling_point": CELSIUS[liquid] if celsius else CELSIUS[liquid] * 9 / 5 + 32,
        "unit": "Celsius" if celsius else "Fahrenheit",
    }
