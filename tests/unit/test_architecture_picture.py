"""The picture of the architecture shows what the templates have, and nothing that a reader's browser would load."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from infra.scripts import architecture_picture
from infra.scripts.architecture_picture import CAPTIONS, SERVICES, draw_architecture

ROOT = Path(__file__).parents[2]
SVG = (ROOT / "docs" / "architecture.svg").read_text()
NAMESPACE = "{http://www.w3.org/2000/svg}"
TEXTS = [text.text or "" for text in ElementTree.fromstring(SVG).iter(f"{NAMESPACE}text")]


def test_each_function_and_each_service_is_in_the_picture() -> None:
    functions = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}

    assert {*functions, *(name for name, _ in SERVICES.values())} <= set(TEXTS)


def test_a_function_without_a_caption_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    others = {name: caption for name, caption in CAPTIONS.items() if name != "worker"}
    monkeypatch.setattr(architecture_picture, "CAPTIONS", others)

    with pytest.raises(ValueError, match=r"CAPTIONS of infra/scripts/architecture_picture\.py: worker\."):
        draw_architecture()


def test_captions_fit_into_the_boxes() -> None:
    assert {name: caption for name, caption in CAPTIONS.items() if not 0 < len(caption) <= 16} == {}


def test_the_picture_loads_nothing_and_runs_nothing() -> None:
    assert re.findall(r"<script|<image|<foreignObject|href|@import|https?://(?!www\.w3\.org/2000/svg)", SVG) == []
    assert re.findall(r"url\(([^)]*)\)", SVG.replace("url(#head)", "")) == []


def test_the_picture_has_colours_for_dark_pages_and_a_description() -> None:
    assert "@media (prefers-color-scheme: dark)" in SVG
    assert ElementTree.fromstring(SVG).findtext(f"{NAMESPACE}desc")
