"""Archives of bytecode: modules that come from one are those of the plain files, and a bad archive is not used."""

import json
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest
from infra.scripts.archives import archive_modules

from stint.archive import HEAD_BYTES

CORE = Path(__file__).parents[2] / "layers" / "core"
TAG = str(sys.implementation.cache_tag)

SOURCES = {
    "shop/__init__.py": '"""A shop."""\nfrom importlib.resources import files\nGOODS = files(__name__)\n',
    "shop/goods.txt": "tea",
    "shop/till.py": "def pay(price):\n    return 1 / price  # the line\n",
    "shop/back/__init__.py": "from . import office\n",
    "shop/back/office.py": "from shop.till import pay\n",
    "single.py": "VALUE = 1\n",
    "loose/part.py": "VALUE = 2\n",  # a folder that is no package for the archive
}

DESCRIBE = """
import sys
sys.path.insert(0, sys.argv[1])
from stint.archive import install_archives
install_archives(sys.argv[1])
import shop, shop.back, shop.till, single, loose.part
import inspect, json, marshal, traceback
named = {name: module for name, module in sys.modules.items() if name.split(".")[0] in ("shop", "single", "loose")}
def describe(module):
    spec = module.__spec__
    places = spec.submodule_search_locations
    code = marshal.dumps(spec.loader.get_code(module.__name__), 2).hex()
    where = [module.__file__, spec.origin, spec.cached, spec.has_location, places and list(places)]
    return [*where, module.__package__, code]
try:
    shop.till.pay(0)
except ZeroDivisionError as error:
    text = traceback.format_exc()
found = {name: describe(module) for name, module in named.items()}
print(json.dumps([found, text, inspect.getsource(shop.till.pay), shop.GOODS.joinpath("goods.txt").read_text()]))
print(sorted(name for name, module in named.items() if type(module.__spec__.loader).__name__ == "ArchiveLoader"))
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in SOURCES:
        if name.endswith(".py"):
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(tmp_path / name), dfile=f"/opt/python/{name}", invalidation_mode=mode)
    return tmp_path


def describe(folder: Path) -> list[str]:
    """Return what a process prints that imports the modules."""
    environment = {"PYTHONPATH": str(CORE), "PATH": os.defpath}
    command = [sys.executable, "-c", DESCRIBE, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_modules_of_an_archive_are_those_of_the_files(shop: Path) -> None:
    plain, from_archive = describe(shop)
    assert from_archive == "[]"

    assert archive_modules(shop, "Shop", TAG, {}) == 5
    archived, from_archive = describe(shop)

    assert archived == plain
    assert from_archive == "['shop', 'shop.back', 'shop.back.office', 'shop.till', 'single']"
    assert list(shop.rglob("*.pyc")) == [shop / f"loose/__pycache__/part.{TAG}.pyc"]


FROM_TWO_PLACES = """
import sys
sys.path[:0] = [sys.argv[2], sys.argv[1]]
import shop
from stint.archive import install_archives
install_archives(sys.argv[1])
import shop.till, single
print(shop.till.__file__, single.__file__)
"""


def test_a_package_that_was_imported_from_another_place_has_its_modules_there(shop: Path, tmp_path: Path) -> None:
    archive_modules(shop, "Shop", TAG, {})
    other = tmp_path / "other"
    (other / "shop").mkdir(parents=True)
    for name in ("shop/__init__.py", "shop/till.py"):
        (other / name).write_text(SOURCES[name])
    environment = {"PYTHONPATH": str(CORE), "PATH": os.defpath}
    command = [sys.executable, "-c", FROM_TWO_PLACES, str(shop), str(other)]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.split() == [f"{other}/shop/till.py", f"{shop}/single.py"]


def test_a_source_beside_its_extension_module_is_not_archived(shop: Path) -> None:
    (shop / "shop/till.cpython-39-x86_64-linux-gnu.so").touch()

    assert archive_modules(shop, "Shop", TAG, {}) == 4
    assert (shop / f"shop/__pycache__/till.{TAG}.pyc").exists()


def test_a_traceback_and_data_come_from_the_deployed_files(shop: Path) -> None:
    archive_modules(shop, "Shop", TAG, {})

    _, trace, source, goods = json.loads(describe(shop)[0])

    assert f'File "{shop}/shop/till.py", line 2, in pay\n    return 1 / price  # the line' in trace
    assert (source, goods) == (SOURCES["shop/till.py"], "tea")


def test_the_same_files_make_the_same_archive(shop: Path) -> None:
    bytecode = {path: path.read_bytes() for path in shop.rglob("*.pyc")}
    archive = shop / "Shop.bytecode"
    archive_modules(shop, "Shop", TAG, {("a", "eval"): b"code"})
    first = archive.read_bytes()
    archive.unlink()
    for path, content in bytecode.items():
        path.write_bytes(content)

    archive_modules(shop, "Shop", TAG, {("a", "eval"): b"code"})

    assert archive.read_bytes() == first


@pytest.mark.parametrize(
    ("begin", "end", "reason"),
    [
        (b"\0\0\0\0", None, "of another version of Python"),
        (b"", -1, "incomplete"),
        (b"", HEAD_BYTES // 2, "incomplete"),
    ],
)
def test_an_archive_that_cannot_be_read_is_logged_and_not_used(
    shop: Path, begin: bytes, end: int | None, reason: str
) -> None:
    archive_modules(shop, "Shop", TAG, {})
    archive = shop / "Shop.bytecode"
    archive.write_bytes((begin + archive.read_bytes()[len(begin) :])[:end])

    line, _, from_archive = describe(shop)

    assert json.loads(line) == {
        "level": "WARNING",
        "message": f"Shop.bytecode is not used: it is {reason}",
        "logger": "stint.archive",
    }
    assert from_archive == "[]"


CLASSES = """
import dataclasses, stint.dataclasses

@dataclasses.dataclass(frozen=True, order=True)
class Sum:
    left: int
    right: int = 1

@stint.dataclasses.dataclass(frozen=True)
class Word:
    text: str
"""
RECORD = """
import marshal, sys
from infra.scripts.record_texts import record
sys.path.insert(0, sys.argv[1])
import shop
recorded = record(shop)
texts = {(text, mode): marshal.dumps(compile(text, "<archived>", mode), 2) for text, mode in recorded}
print(recorded == {(text, mode): marshal.dumps(compile(text, "<string>", mode), 2) for text, mode in recorded})
from pathlib import Path
from infra.scripts.archives import archive_modules
archive_modules(Path(sys.argv[1]), "Shop", sys.implementation.cache_tag, texts)
"""
USE = """
import sys
from stint.archive import Archive
from stint.compiled_texts import use_compiled_texts
use_compiled_texts(Archive(sys.argv[1] + "/Shop.bytecode"))
sys.path.insert(0, sys.argv[1])
from shop.classes import Sum, Word
import dataclasses, stint.dataclasses
print(Sum(2) < Sum(3), Sum(2), Word("a"), hash(Sum(2)) == hash(Sum(2)))
unknown = dataclasses.make_dataclass("Unknown", ["size"])
for method in (Sum.__init__, Sum.__lt__, Word.__init__, unknown.__init__):
    print(method.__code__.co_filename)
"""


def run(program: str, *arguments: str | Path) -> list[str]:
    environment = {"PYTHONPATH": os.pathsep.join((str(CORE), str(CORE.parents[1]))), "PATH": os.defpath}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_code_of_a_recorded_text_comes_from_the_archive_and_another_text_is_compiled(shop: Path) -> None:
    (shop / "shop/classes.py").write_text(CLASSES)
    py_compile.compile(str(shop / "shop/classes.py"))

    assert run(RECORD, shop) == ["True"]
    objects, *files = run(USE, shop)
    assert objects == "True Sum(left=2, right=1) Word(text='a') True"
    assert files == ["<archived>", "<archived>", "<archived>", "<string>"]


PATTERNS = """
import re
WORD = re.compile(r"(?P<first>[^\\W\\d]+)\\s|(?:\\u00e9|(?P<last>x{2,}))$", re.IGNORECASE | re.MULTILINE)
LINE = re.compile(rb"[\\r\\n]+")
"""
RECORD_PATTERNS = """
import sys
from infra.scripts.record_texts import record
sys.path.insert(0, sys.argv[1])
import shop
from pathlib import Path
from infra.scripts.archives import archive_modules
archive_modules(Path(sys.argv[1]), "Shop", sys.implementation.cache_tag, record(shop))
"""
USE_PATTERNS = """
import sys, _sre, re, re._compiler
from stint.archive import Archive
from stint.compiled_texts import use_compiled_texts
compiled, compile_as_usual = [], re._compiler.compile
def compile_and_note(text, flags=0):
    compiled.append(text)
    return compile_as_usual(text, flags)
re._compiler.compile = compile_and_note
use_compiled_texts(Archive(sys.argv[1] + "/Shop.bytecode"))
if sys.argv[2:]:
    _sre.MAGIC = int(sys.argv[2])
sys.path.insert(0, sys.argv[1])
from shop.patterns import LINE, WORD
print([each.pattern in compiled for each in (WORD, LINE)])
usual = compile_as_usual(WORD.pattern, re.IGNORECASE | re.MULTILINE)  # equal patterns have the same code
print(usual == WORD, usual.groupindex == WORD.groupindex, usual.groups == WORD.groups, usual is WORD)
print(WORD.search("one\\n\\u00c9XXX").lastgroup, re.search("un(known)", "unknown")[1], "un(known)" in compiled)
"""


def test_a_recorded_regular_expression_is_made_from_the_archive_and_another_one_is_compiled(shop: Path) -> None:
    (shop / "shop/patterns.py").write_text(PATTERNS)
    py_compile.compile(str(shop / "shop/patterns.py"))
    assert run(RECORD_PATTERNS, shop) == []

    alike = ["True True True False", "first known True"]
    assert run(USE_PATTERNS, shop) == ["[False, True]", *alike]
    assert run(USE_PATTERNS, shop, "20000101") == ["[True, True]", *alike]  # the engine of another version of Python
