"""Folders that `make deploy` accepts as this repository, with the real build or the templates of the base build."""

import os
from pathlib import Path
from typing import Any

import yaml
from infra.local.engine import ROOT
from tests.deploy.base_build import TEMPLATE, read_base_build
from tests.deploy.engine_gaps import UNKNOWN_TYPES

SOURCES = ("template.yaml", "infra", "layers", "functions")
STUB = "def handler(event, context):\n    raise NotImplementedError('the base build has no code')\n"


def make_project(folder: Path, build: Path) -> Path:
    """Make a project of the real build, which is linked. Only its template is changed."""
    for source in SOURCES:
        link(folder / source, ROOT / source)
    target = start_build(folder)
    for artefact in (path for path in build.iterdir() if path.is_dir()):
        link(target / artefact.name, artefact)
    write_template(target / TEMPLATE, (build / TEMPLATE).read_text())
    return folder


def make_base_project(folder: Path) -> Path:
    """Make a project of the base build: its templates, and functions and layers that only have a stub."""
    (folder / "functions").mkdir(parents=True)
    target = start_build(folder)
    templates = read_base_build().templates
    for name, text in templates.items():
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_text(text)
    write_template(target / TEMPLATE, templates[TEMPLATE])
    for resource in yaml.safe_load(templates[TEMPLATE])["Resources"].values():
        properties = resource.get("Properties", {})
        if name := properties.get("CodeUri"):
            write_stub(target / name)
        elif name := properties.get("ContentUri"):
            write_stub(target / name / "python")
    return folder


def start_build(folder: Path) -> Path:
    link(folder / ".venv-sam", ROOT / ".venv-sam")
    target = folder / ".aws-sam" / "build"
    target.mkdir(parents=True)
    return target


def write_template(file: Path, text: str) -> None:
    """Write a template without what the engine cannot create."""
    template: dict[str, Any] = yaml.safe_load(text)
    resources = template["Resources"]
    template["Resources"] = {name: each for name, each in resources.items() if each["Type"] not in UNKNOWN_TYPES}
    file.write_text(yaml.safe_dump(template, sort_keys=False))


def write_stub(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.py").write_text(STUB)


def link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(target, place)
