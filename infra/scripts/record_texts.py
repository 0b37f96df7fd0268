"""`python -m infra.scripts.record_texts`: write the texts that imports of the package compile, and their code.

It imports all modules, so that what a function imports later is recorded, too. The texts depend on the version of
Python, and not on the processor.
"""

import dataclasses
import importlib
import marshal
import pkgutil
import re
import sys
import typing
from types import CodeType, ModuleType
from typing import Any

import stint
import stint.dataclasses

MARSHAL_VERSION = 2
"""The last one that does not depend on how often an object is referred to: the same code has the same bytes."""

Texts = dict[tuple[str, str | int], bytes]
"""Code by text and mode, and the parts of a regular expression by its text and flags."""


def record(package: ModuleType) -> Texts:
    """Import the modules of a package, and return the code of each text, in the order of the texts."""
    texts: Texts = {}

    def compile_text(text: str, file: str, mode: str) -> CodeType:
        code: CodeType = compile(text, file, mode, dont_inherit=True)
        texts[text, mode] = marshal.dumps(code, MARSHAL_VERSION)
        return code

    def execute(text: str, scope: dict[str, Any], names: dict[str, Any] | None = None) -> None:
        exec(compile_text(text, "<string>", "exec"), scope, names)  # noqa: S102 - what the caller would execute

    for module in (dataclasses, stint.dataclasses):
        vars(module)["exec"] = execute
    vars(typing)["compile"] = compile_text
    record_patterns(texts)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)
    return dict(sorted(texts.items(), key=lambda item: (item[0][0], str(item[0][1]))))


def record_patterns(texts: Texts) -> None:
    """Add the regular expressions that are compiled from now on, as what the engine makes them from."""
    compiler = importlib.import_module("re._compiler")
    engine = compiler._sre
    compile_pattern, make = compiler.compile, engine.compile

    def compile_and_record(pattern: Any, flags: int = 0) -> "re.Pattern[Any]":
        def make_and_record(text: Any, found: int, code: list[int], *groups: Any) -> "re.Pattern[Any]":
            if isinstance(text, str):
                plain = [int(each) for each in code]  # some are of a subclass
                texts[text, flags] = marshal.dumps((engine.MAGIC, found, plain, *groups), MARSHAL_VERSION)
            made: re.Pattern[Any] = make(text, found, code, *groups)
            return made

        engine.compile = make_and_record
        compiled: re.Pattern[Any] = compile_pattern(pattern, flags)
        return compiled

    vars(compiler)["compile"] = compile_and_record


if __name__ == "__main__":
    sys.stdout.buffer.write(marshal.dumps(record(stint), MARSHAL_VERSION))
