"""`python -m infra.scripts.record_texts`: write the texts that imports of the package compile, and their code.

It imports all modules, so that what a function imports later is recorded, too. The texts depend on the version of
Python, and not on the processor.
"""

import dataclasses
import importlib
import marshal
import pkgutil
import sys
import typing
from types import CodeType, ModuleType
from typing import Any

import stint
import stint.dataclasses

MARSHAL_VERSION = 2
"""The last one that does not depend on how often an object is referred to: the same code has the same bytes."""

Texts = dict[tuple[str, str], bytes]


def record(package: ModuleType) -> Texts:
    """Import the modules of a package, and return the code of each text and mode, in the order of the texts."""
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
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)
    return dict(sorted(texts.items()))


if __name__ == "__main__":
    sys.stdout.buffer.write(marshal.dumps(record(stint), MARSHAL_VERSION))
