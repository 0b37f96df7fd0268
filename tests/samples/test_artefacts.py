import importlib.util
import re
from pathlib import Path

import pytest
import yaml
from infra.local.engine import ROOT
from infra.scripts.openapi import DOCUMENT

from stint.archive import Archive

pytestmark = pytest.mark.built

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html: function and layers, unzipped.
UNZIPPED_LIMIT = 250 * 1024 * 1024
FUNCTIONS = {
    "Authorizer",
    "Agents",
    "Turns",
    "Responses",
    "Knowledge",
    "October",
    "OpenAIAgents",
    "Protocols",
    "Registry",
    "Admin",
}
FUNCTIONS |= {"Console", "Sandbox", "Worker"}
LAYERS = {"CoreLayer", "RuntimeLayer", "DependenciesLayer", "ExtractionLayer", "AuthorizerLayer"}
# Bits of a .pyc's second word, https://peps.python.org/pep-0552/: hash-based, and not compared with the source.
UNCHECKED_HASH = 1


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"__pycache__"}


def test_the_wrapper_lies_at_the_root_of_its_layer_and_is_executable(build: Path) -> None:
    wrapper = build / "RuntimeLayer" / "stint-runtime"

    assert wrapper.stat().st_mode & 0o555 == 0o555
    assert entries(build / "RuntimeLayer") == {"python", "stint-runtime"}
    assert not list((build / "RuntimeLayer" / "python").rglob("stint-runtime"))
    template = yaml.safe_load((build / "template.yaml").read_text())
    variables = template["Resources"]["Turns"]["Properties"]["Environment"]["Variables"]
    assert variables["AWS_LAMBDA_EXEC_WRAPPER"] == f"/opt/{wrapper.name}"


def test_every_function_fits_with_its_layers(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {folder.name: size(folder) for folder in sorted(build.iterdir()) if folder.is_dir()}

    with capsys.disabled():
        print("\nunzipped: " + ", ".join(f"{name} {bytes_ / 1e6:.1f} MB" for name, bytes_ in sizes.items()))

    assert set(sizes) >= FUNCTIONS | LAYERS
    layers = sum(sizes[layer] for layer in LAYERS)
    for function in FUNCTIONS:
        assert layers + sizes[function] < UNZIPPED_LIMIT


def test_the_pages_are_shipped(build: Path) -> None:
    static = build / "CoreLayer" / "python" / "stint" / "http" / "static"

    assert entries(static) == {"docs.html", "openapi.json", "reference.css", "reference.js"}
    assert (static / "openapi.json").read_bytes() == DOCUMENT.read_bytes()


def test_the_console_is_shipped_without_its_sources_and_packages(build: Path) -> None:
    static = build / "Console" / "static"

    assert entries(build / "Console") == {"app.py", "static"}
    assert entries(static) == {"assets", "index.html", "version"}
    assert len(list((static / "assets").glob("*.js.br"))) > 1


def archived_sources(layer: Path) -> dict[Path, str]:
    """Return the files whose code is in the archive of a layer, and the names of the modules."""
    folder = layer / "python"
    found = {}
    for path in folder.glob("*.bytecode"):
        for name, (_, _, is_package) in Archive(str(path)).modules.items():
            place = folder.joinpath(*name.split("."))
            found[place / "__init__.py" if is_package else place.with_suffix(".py")] = name
    return found


def test_every_source_has_bytecode_that_is_never_compared_with_it(build: Path) -> None:
    sources = {path for name in FUNCTIONS | LAYERS for path in (build / name).rglob("*.py")}
    archived = {path for name in LAYERS for path in archived_sources(build / name)}
    bytecode = {path: Path(importlib.util.cache_from_source(str(path))) for path in sources}

    assert len(archived) > 500
    assert archived <= sources
    # Once: a copy would have to be deployed, too.
    assert {path for path in sources if bytecode[path].is_file()} == sources - archived
    flags = {int.from_bytes(bytecode[path].read_bytes()[4:8], "little") for path in sources - archived}
    assert flags == {UNCHECKED_HASH}


def test_no_module_is_in_the_archives_of_two_layers(build: Path) -> None:
    names = [name for layer in build.glob("*Layer") for name in archived_sources(layer).values()]

    assert len(names) == len(set(names))


def test_the_archive_of_the_package_has_the_texts_that_its_imports_compile(build: Path) -> None:
    texts = Archive(str(build / "CoreLayer" / "python" / "CoreLayer.bytecode")).texts

    assert sum(text.startswith("def __init__(self") for text, _ in texts) > 100


def folder_of(function: str) -> str:
    """Return the folder of a function, whose resource has the same name without underscores."""
    folders = [path.name for path in (ROOT / "functions").iterdir()]
    return next(each for each in folders if each.replace("_", "") == function.lower())


def test_nothing_but_the_product_is_shipped(build: Path) -> None:
    assert entries(build / "CoreLayer" / "python") == {"stint", "CoreLayer.bytecode"}
    assert entries(build / "RuntimeLayer" / "python") == {"stint_runtime"}
    for function in FUNCTIONS:
        own = {path.name for path in (ROOT / "functions" / folder_of(function)).glob("*.py")}
        assert entries(build / function) == own | ({"static"} if function == "Console" else set())
        assert own == {"app.py"} or function == "Sandbox"
    for layer in LAYERS:
        names = {path.name for path in (build / layer).rglob("*") if path.is_dir()}
        assert not names & {"tests", "bin", ".git", ".mypy_cache", ".pytest_cache"}


@pytest.mark.parametrize(
    ("layer", "some"),
    [
        ("dependencies", {"fastapi", "boto3", "httpx", "mangum"}),
        ("extraction", {"lxml", "openpyxl", "python-docx", "python-pptx", "semchunk"}),
    ],
)
def test_the_dependencies_are_those_of_the_lock_file_and_no_more(build: Path, layer: str, some: set[str]) -> None:
    lock = (ROOT / "layers" / layer / "requirements.txt").read_text()
    locked = {(name.lower(), version) for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, re.MULTILINE)}

    found = {
        distribution_of(path)
        for path in (build / f"{layer.capitalize()}Layer" / "python").iterdir()
        if path.suffix == ".dist-info"
    }

    assert some <= {name for name, _ in found}
    assert found <= locked


def distribution_of(folder: Path) -> tuple[str, str]:
    """Name and version, as the lock file writes them, of an installed distribution."""
    name, version = folder.name.removesuffix(".dist-info").rsplit("-", 1)
    return name.lower().replace("_", "-"), version
