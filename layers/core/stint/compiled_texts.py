"""Code of texts that Python compiles at each import, from an archive.

The methods of the standard library's dataclasses, and `__init__` of ours, are texts that `exec` compiles, and `typing`
compiles each annotation that is a string, up to Python 3.13: together a seventh of a cold start. The regular
expressions of modules are another twentieth. `make build` records them with their code
(infra/scripts/record_texts.py). The functions here stand in for `exec` and `compile` in the modules that call them. A
text that was not recorded is compiled as usual, and a regular expression for another version of the engine, too.
"""

import dataclasses
import re
import typing
from importlib import import_module
from types import CodeType
from typing import Any

import stint.dataclasses
from stint.archive import Archive


def use_compiled_texts(archive: Archive) -> None:
    """Take the code of texts from an archive, in the modules that compile many."""

    def execute(text: str, scope: dict[str, Any], names: dict[str, Any] | None = None) -> None:
        exec(find(text, "exec") or text, scope, names)  # noqa: S102 - what the caller would execute

    def compile_text(text: str, file: str, mode: str) -> CodeType:
        found = find(text, mode)
        compiled: CodeType = compile(text, file, mode, dont_inherit=True) if found is None else found
        return compiled

    def find(text: str, mode: str) -> CodeType | None:
        return archive.code_of_text(text, mode) if (text, mode) in archive.texts else None

    for module in (dataclasses, stint.dataclasses):
        vars(module)["exec"] = execute
    vars(typing)["compile"] = compile_text
    use_compiled_patterns(archive)


def use_compiled_patterns(archive: Archive) -> None:
    """Take the code of regular expressions from an archive."""
    compiler = import_module("re._compiler")
    engine, compile_pattern = compiler._sre, compiler.compile

    def make_pattern(pattern: Any, flags: int = 0) -> "re.Pattern[Any]":
        made: re.Pattern[Any]
        if isinstance(pattern, str) and (pattern, flags) in archive.texts:
            magic, *parts = archive.parts_of_pattern(pattern, flags)
            if magic == engine.MAGIC:
                made = engine.compile(pattern, *parts)
                return made
        made = compile_pattern(pattern, flags)
        return made

    vars(compiler)["compile"] = make_pattern
