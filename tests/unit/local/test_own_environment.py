"""A function of the local cloud has the settings that the template declares for it."""

from pathlib import Path

from infra.local.cloud import SANDBOX, own_environment
from infra.local.system import Function

SERVICES = {
    "STINT_TABLE": "t",
    "STINT_PRICES": "{}",
    "STINT_HEARTBEAT_SECONDS": "1",
    "OPENAI_API_KEY": "sk",
    "HOME": "/",
}


def function(name: str, **environment: str) -> Function:
    return Function(name, name.lower(), "app.handler", Path(), (), environment, 3, 128)


TURNS = function("Turns", STINT_TABLE="", STINT_PRICES="")
ADMIN = function("Admin", STINT_TABLE="")
CODE = function(SANDBOX, SANDBOX_NAMESPACES="")
ALL = (TURNS, ADMIN, CODE)


def test_a_function_gets_no_setting_that_is_declared_for_others_only() -> None:
    assert own_environment(TURNS, SERVICES, ALL) == SERVICES
    assert own_environment(ADMIN, SERVICES, ALL) == {
        name: SERVICES[name] for name in SERVICES if name != "STINT_PRICES"
    }


def test_code_of_models_gets_no_setting_and_no_key() -> None:
    assert own_environment(CODE, {**SERVICES, "SANDBOX_NAMESPACES": "1"}, ALL) == {
        "SANDBOX_NAMESPACES": "1",
        "HOME": "/",
    }
