"""Translations of templates, and the folder that keeps them."""

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from infra.local import translation
from infra.local.engine import ROOT
from infra.local.template_file import read_template
from infra.local.translation import translate
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

REGION = "us-east-1"
TEMPLATE = """
AWSTemplateFormatVersion: 2010-09-09
Transform: AWS::Serverless-2016-10-31
Resources:
  One:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: code, Handler: app.handler, Runtime: python3.12, MemorySize: 128}
"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "kept"
    monkeypatch.setattr(translation, "KEPT", folder)
    return folder


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "template.yaml"
    path.write_text(TEMPLATE)
    return path


def refuse(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("it was translated")


def memory(translated: dict[str, Any]) -> int:
    size: int = translated["Resources"]["One"]["Properties"]["MemorySize"]
    return size


def test_a_translation_is_made_once(kept: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = translate(template, REGION)
    monkeypatch.setattr(Translator, "translate", refuse)

    assert translate(template, REGION) == first
    assert first["Resources"]["One"]["Properties"]["Code"] == {"S3Bucket": "local", "S3Key": "code"}


def test_whatever_it_depends_on_makes_another_one(kept: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shrink(document: dict[str, Any]) -> None:
        document["Resources"]["One"]["Properties"]["MemorySize"] = 256

    plain = translate(template, REGION)
    changed = translate(template, REGION, change=shrink)
    template.write_text(TEMPLATE.replace("128", "512"))
    edited = translate(template, REGION)
    translate(template, "eu-west-1")
    monkeypatch.setattr("samtranslator.__version__", "0")
    translate(template, REGION)

    assert [memory(each) for each in (plain, changed, edited)] == [128, 256, 512]
    assert len(list(kept.iterdir())) == 5


@pytest.mark.parametrize("content", ["", "{", "\xff"])
def test_a_broken_file_is_replaced(kept: Path, template: Path, content: str) -> None:
    first = translate(template, REGION)
    (place,) = kept.iterdir()
    place.write_bytes(content.encode("latin-1"))

    assert translate(template, REGION) == first
    assert json.loads(place.read_text()) == first


def test_a_folder_that_cannot_be_written_keeps_nothing(kept: Path, template: Path) -> None:
    kept.write_text("a file")

    assert memory(translate(template, REGION)) == 128


def test_the_oldest_are_removed(kept: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "MOST_KEPT", 2)
    for size in (128, 256, 512):
        template.write_text(TEMPLATE.replace("128", str(size)))
        translate(template, REGION)

    assert sorted(memory(json.loads(path.read_text())) for path in kept.iterdir()) == [256, 512]


def test_the_systems_template_is_parsed_like_by_the_translator() -> None:
    template = ROOT / "template.yaml"

    assert read_template(template) == yaml_parse(template.read_text())
