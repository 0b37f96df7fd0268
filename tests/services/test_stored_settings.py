"""Settings in objects of the local engine, where a deployed stack has them in S3 and SSM."""

from typing import Any

import pytest
from infra.local.engine import Engine
from infra.local.environment import shell_settings

from stint.bootstrap.restore import Composition, start
from stint.cli.command_line import run
from stint.domain.ids import new_id
from stint.settings import SettingsError, read_settings

PRICES = '{"openai/gpt-9": {"input": 1, "output": 2}}'


@pytest.fixture
def bucket(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a bucket with versions. AWS clients of this process use the engine."""
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    return engine.outputs["BucketName"]


def started(reference: str) -> Composition:
    composition = Composition(lambda: read_settings({"STINT_PRICES": reference}))
    start(composition)
    return composition


def test_an_object_is_read_in_its_version(engine: Engine, bucket: str) -> None:
    s3, key = engine.running.client("s3"), f"settings/{new_id()}.json"
    first, second = (s3.put_object(Bucket=bucket, Key=key, Body=body)["VersionId"] for body in (b"{}", PRICES.encode()))

    assert started(f"s3://{bucket}/{key}?versionId={first}").settings.prices == "{}"
    assert started(f"s3://{bucket}/{key}?versionId={second}").settings.prices == PRICES


@pytest.mark.parametrize("kind", ["String", "SecureString"])
def test_a_parameter_is_read_in_its_version(engine: Engine, bucket: str, kind: str) -> None:
    ssm, name = engine.running.client("ssm"), f"/stint/{new_id()}"
    for value in ("{}", PRICES):
        ssm.put_parameter(Name=name, Value=value, Type=kind, Overwrite=True)

    assert started(f"ssm://{name}?version=2").settings.prices == PRICES


def test_what_the_engine_lacks_ends_the_start_with_its_reason(bucket: str) -> None:
    hash_ = "0" * 64

    with pytest.raises(SettingsError, match="NoSuchKey"):
        started(f"s3://{bucket}/{new_id()}?sha256={hash_}")
    with pytest.raises(SettingsError, match="NoSuchBucket"):
        started(f"s3://none-{new_id()[-8:]}/prices?sha256={hash_}".lower())
    with pytest.raises(SettingsError, match="ParameterNotFound"):
        started(f"ssm:///none/{new_id()}?sha256={hash_}")


def test_the_command_line_names_an_object_that_it_cannot_read(
    bucket: str, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    variables: dict[str, Any] = {**engine.running.variables(), "STINT_REGISTRY": f"s3://{bucket}/none?versionId=v1"}

    assert run(["keys", "list"], variables) == 1
    assert "STINT_REGISTRY: s3://" in capsys.readouterr().err


def test_the_local_cloud_takes_the_same_reference() -> None:
    reference = "ssm:///stint/providers?version=1"
    shell = {"STINT_PROVIDERS": reference, "STINT_DEFAULT_MODEL": "own/model"}

    assert shell_settings(shell)["STINT_PROVIDERS"] == reference
