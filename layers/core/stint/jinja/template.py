"""Prompts that are made of messages by the Jinja template of a caller.

Jinja's sandbox keeps a template from Python's internals, but lets it use any time and memory. So a template may use the
part of Jinja in `syntax.py` only, and `evaluation.py` charges for all that it reads and makes.
"""

from collections.abc import Sequence
from functools import lru_cache
from types import CodeType
from typing import cast

from jinja2 import Template, nodes
from jinja2.exceptions import TemplateError, TemplateSyntaxError

from stint.domain.errors import InvalidRequest
from stint.jinja.evaluation import MAX_WORK, BoundedEnvironment, TemplateMessage, WorkLimitExceeded
from stint.jinja.syntax import TemplateChecker, Unsupported

MAX_TEMPLATE_LENGTH = 10_000
"""Maximum characters of a template."""
MAX_PROMPT_LENGTH = 200_000
"""Maximum characters of a prompt."""
CACHED_TEMPLATES = 16
"""Templates whose code a process keeps."""
FAULTS = (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError, RecursionError)
"""Errors of an expression whose values do not suit it."""


def check_template(template: str, param: str) -> None:
    """Raise InvalidRequest if a template cannot be used. The message has the line, and `param`, its field."""
    try:
        compiled(template)
    except InvalidRequest as error:
        raise InvalidRequest(f"{param}: {error.message}", code=error.code, param=param) from None


def fill_template(template: str, messages: Sequence[str]) -> str:
    """Return the prompt that a template makes of messages.

    Raises:
        InvalidRequest: the template cannot be used, or not with these messages.
    """
    environment = BoundedEnvironment()
    filled = Template.from_code(environment, compiled(template), {})
    size, texts = 0, list[str]()
    try:
        for text in filled.generate(messages=[TemplateMessage(each) for each in messages]):
            size += len(text)
            # While the prompt is generated, so that it is never kept in full.
            if size > MAX_PROMPT_LENGTH:
                raise unusable(f"makes a prompt of more than {MAX_PROMPT_LENGTH:,} characters")
            texts.append(text)
    except WorkLimitExceeded:
        raise unusable(f"reads more than {MAX_WORK:,} characters for these messages") from None
    except FAULTS as error:
        raise unusable(f"cannot be used with these messages: {str(error)[:200]}") from error
    return "".join(texts)


@lru_cache(CACHED_TEMPLATES)
def compiled(template: str) -> CodeType:
    """Return the code of a template. Raises InvalidRequest."""
    if len(template) > MAX_TEMPLATE_LENGTH:
        raise unusable(f"has more than {MAX_TEMPLATE_LENGTH:,} characters")
    environment = BoundedEnvironment()
    try:
        return environment.compile(cast("nodes.Template", TemplateChecker().visit(environment.parse(template))))
    except Unsupported as error:
        raise unusable(f"cannot be used: line {error.line}: {error.problem}") from None
    except TemplateSyntaxError as error:
        raise unusable(f"is not valid Jinja: line {error.lineno}: {str(error.message)[:200]}") from None
    except WorkLimitExceeded:
        raise unusable(f"reads more than {MAX_WORK:,} characters") from None
    except RecursionError:
        raise unusable("is nested too deeply") from None
    # Python's compiler can refuse the code that Jinja makes of a valid template.
    except (*FAULTS, SyntaxError, MemoryError) as error:
        raise unusable(f"cannot be read: {str(error)[:200]}") from None


def unusable(problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"The template of the query generator {problem}.",
        code="invalid_query_template",
        param="query_config.query_generator_config.template",
    )
