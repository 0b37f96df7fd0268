"""A built function loads the same modules with the archives of its layers and without them."""

import json
import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest
import yaml
from infra.local.opt import merge_layers
from infra.scripts.published_versions import find_functions

from stint.archive import Archive, ArchiveFinder

pytestmark = pytest.mark.built

FUNCTIONS = (
    "admin",
    "agents",
    "authorizer",
    "knowledge",
    "october",
    "openai_agents",
    "protocols",
    "registry",
    "responses",
    "turns",
    "worker",
)
OF_ARCHIVES = {"stint.compiled_texts"}
IMPORTER = ["stint", "stint.archive"]

PROGRAM = """
import sys
import app
import hashlib, json, marshal
from importlib.machinery import SourceFileLoader
found, of_files = {}, []
for name, module in sorted(sys.modules.items()):
    spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None) or ""
    if spec is None or not file.startswith(sys.argv[1]) or not isinstance(spec.loader, SourceFileLoader):
        continue
    places = spec.submodule_search_locations
    code = hashlib.sha256(marshal.dumps(spec.loader.get_code(name), 2)).hexdigest()
    found[name] = [file, spec.cached, places and list(places), code]
    if type(spec.loader) is SourceFileLoader:
        of_files.append(name)
print(json.dumps([sorted(sys.modules), found, of_files]))
"""
DATA = """
import stint.http
import certifi, botocore.loaders, idna, pydantic
import importlib.metadata, importlib.resources, os, pkgutil
print(os.path.isfile(certifi.where()), "2012-11-05" in botocore.loaders.Loader().list_api_versions("sqs", "service-2"))
print(importlib.metadata.version("pydantic") == pydantic.VERSION, idna.encode("b\u00fccher.example").decode())
page = "static/docs.html"
print(importlib.resources.files("stint.http").joinpath(page).read_bytes() == pkgutil.get_data("stint.http", page))
print({type(each.__spec__.loader).__name__ for each in (certifi, botocore.loaders, idna, pydantic, stint.http)})
"""


def read_template(build: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((build / "template.yaml").read_text())
    return parsed


def layers_of(build: Path, function: str) -> list[Path]:
    template = read_template(build)
    own = template["Resources"][find_functions(template)[function]]["Properties"].get("Layers", [])
    return [build / each["Ref"] for each in (*template["Globals"]["Function"]["Layers"], *own) if "Ref" in each]


def run(program: str, opt: Path, *folders: Path) -> str:
    path = os.pathsep.join(map(str, (*folders, opt / "python")))
    environment = {"PYTHONPATH": path, "PATH": os.defpath, "STINT_AUTH": "none", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program, str(opt)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_loads_the_same_modules_with_archives_and_without(
    build: Path, tmp_path: Path, function: str
) -> None:
    merge_layers(layers_of(build, function), tmp_path)

    folder = build / find_functions(read_template(build))[function]
    archived, of_archives, of_files = json.loads(run(PROGRAM, tmp_path, folder))
    for archive in (tmp_path / "python").glob("*.bytecode"):
        archive.unlink()  # the link
    plain, expected, _ = json.loads(run(PROGRAM, tmp_path, folder))

    assert of_files == IMPORTER
    assert set(archived) - OF_ARCHIVES == set(plain)
    assert {name: each for name, each in of_archives.items() if name not in OF_ARCHIVES} == expected
    assert len(expected) > 100


def test_each_module_of_an_archive_is_the_one_that_python_finds(build: Path) -> None:
    archives = list(build.glob("*/python/*.bytecode"))
    for path in archives:
        archive = Archive(str(path))
        finder = ArchiveFinder(str(path.parent), archive)
        for name in archive.modules:
            folder = str(path.parent / Path(*name.split(".")[:-1]))
            archived, plain = finder.find_spec(name, [folder]), PathFinder.find_spec(name, [folder])
            assert archived is not None
            assert plain is not None
            assert (archived.origin, archived.cached) == (plain.origin, plain.cached)

    assert len(archives) >= 3


def test_packages_of_an_archive_find_their_data(build: Path, tmp_path: Path) -> None:
    merge_layers(layers_of(build, "turns"), tmp_path)

    lines = run(DATA, tmp_path).splitlines()

    assert lines == ["True True", "True xn--bcher-kva.example", "True", "{'ArchiveLoader'}"]
