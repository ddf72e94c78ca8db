"""Rules for the words of the source: openings of docstrings, comments and descriptions, banned terms, and riddles.

``python -m tests.texts [PART OF A PATH]`` lists the offenders by file and line.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PYTHON = sorted((ROOT / "src" / "elimina").rglob("*.py"))
NATIVE = sorted(
    path
    for folder in ("core", "src/elimina/include", "src/elimina/kernels")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".cpp", ".hpp", ".cu", ".cuh", ".h")
)
TESTS = sorted(path for folder in ("tests", "bench", "examples") for path in (ROOT / folder).rglob("*.py"))
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(page for folder in (".github", "bench", "docs", "examples") for page in (ROOT / folder).rglob("*.md")),
]

OPENINGS = re.compile(r"(What|How|Which|Whether|That|Of|To|For|From|Where|As|When|Who|Whose)\b")
"""Words that begin no docstring and no description."""

NOT_A_VERB = re.compile(
    r"(A|An|The|Its|Their|One|No|Not|All|Those|Each|Every|It|This|There|Like|Likewise|See|In|Whoever)\b"
)
"""Words that begin no summary of a function, which begins with a verb in the imperative."""

THIRD_PERSON = re.compile(
    r"(?!(Pass|Process|Address|Guess|Miss|Press|Cross|Express|Access|Discuss|Focus|Compress)\b)[A-Z]\w*s\b"
)

BANNED = re.compile(
    r"\b(levell\w*|crews?|stations?|climbers?|divers?|searchers?|explorers?|value flows?|peaks|nobody|whoever|"
    r"anew|beforehand|by turns|whose fault|has a say|weigh(s|ed|ing)?|(is|are|was|were|be) looked (at|for|after))\b|"
    r"(?<!there )\b(is|are|was|were) no(?! (longer|more|less|better|worse|sooner|larger|smaller|wider|other)\b)"
    r" \w+|, for (it|they|there) |; close to it: ",
    re.IGNORECASE,
)
"""Terms of the table in the guide of style that have no other meaning here, and phrases that read as riddles."""

RIDDLES = re.compile(
    r"\bis (one|a \w+) of (its|their) own\b|\b(is|are|was|were) told\b(?! apart)|"
    r"\bthere (is|are|was|were) no\b[^.;:,]*\bthat\b|\b(leaves|left) of\b|\bby now\b|\bin no hurry\b|\bwhoever\b",
    re.IGNORECASE,
)
"""Phrases that a reader has to solve before they say something."""

RELATIVE = re.compile(
    r"\b(?<!\bso )(?<!\bsuch )(?<!\bexcept )(?<!\bin )(?<!\bthose )(that|which|what|whose|who|where|whatever)\b",
    re.IGNORECASE,
)
"""Words that begin a relative clause: two of them in one line need a second reading."""

SECTION = re.compile(r"^( *)(Args|Attributes|Returns|Yields):$", re.MULTILINE)


class Offence(NamedTuple):
    """A text that breaks a rule."""

    path: Path
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.rule}: {self.text}"


def offences(path: Path) -> list[Offence]:
    """Return the offences in a file, in order."""
    found = _python(path) if path.suffix == ".py" else _page(path) if path.suffix == ".md" else _native(path)
    return sorted(Offence(path, line, rule, text.strip()) for line, rule, text in found)


def _python(path: Path) -> Iterator[tuple[int, str, str]]:
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for number, statement in enumerate(body):
            if not _is_text(statement):
                continue
            if number == 0 and documented:
                yield from _docstring(statement, node)
            elif number and isinstance(body[number - 1], ast.Assign | ast.AnnAssign):
                yield from _docstring(statement, None)
    comment_line = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_text = token.type == tokenize.STRING and " " in token.string and _is_read(token, path)
        if token.type == tokenize.COMMENT or is_text:
            yield from _terms(token.string, token.start[0])
        if token.type == tokenize.COMMENT and path not in TESTS:
            opening = token.string.lstrip("#! ")
            if comment_line != token.start[0] - 1 and OPENINGS.match(opening):
                yield token.start[0], "opening", opening
            comment_line = token.start[0] if token.line.lstrip().startswith("#") else None


def _is_read(token: tokenize.TokenInfo, path: Path) -> bool:
    """Return whether a string is text that people read: any string of the package, a docstring of a test."""
    return path not in TESTS or token.line.lstrip().startswith(('"""', 'r"""'))


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _docstring(statement: ast.Expr, node: ast.AST | None) -> Iterator[tuple[int, str, str]]:
    text: str = statement.value.value  # type: ignore[attr-defined]
    line = statement.lineno
    summary = text.strip().partition("\n")[0]
    if OPENINGS.match(summary):
        yield line, "opening", summary
    elif _is_called(node) and (NOT_A_VERB.match(summary) or THIRD_PERSON.match(summary)):
        yield line, "not imperative", summary
    for section in SECTION.finditer(text):
        indent = len(section.group(1)) + 4
        for offset, row in enumerate(text[section.end() + 1 :].split("\n"), text.count("\n", 0, section.end()) + 1):
            if row and not row.startswith(" " * indent):
                break
            _, colon, description = row.strip().partition(": ")
            if section.group(2) in ("Returns", "Yields"):
                colon, description = ":", row.strip()
            if row[:indent].isspace() and not row[indent:].startswith(" ") and colon and OPENINGS.match(description):
                yield line + offset, "description", row


def _is_called(node: ast.AST | None) -> bool:
    """Return whether a definition is a function that is called by its name, not an attribute or an operator."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    decorators = [ast.unparse(one) for one in node.decorator_list]
    is_special = node.name.startswith("__") and node.name.endswith("__")
    return not is_special and not any(one.endswith(("property", ".setter")) for one in decorators)


def _terms(text: str, line: int) -> Iterator[tuple[int, str, str]]:
    """Yield banned terms outside of code and of names that are described."""
    bare = re.sub(r"(`+)[^`\n]*\1|^ *\w+(?=: )", lambda name: " " * len(name.group()), text, flags=re.MULTILINE)
    for match in BANNED.finditer(bare):
        row = text.count("\n", 0, match.start())
        yield line + row, f"term {match.group()!r}", text.split("\n")[row]


def chained(path: Path) -> Iterator[str]:
    """Yield the lines of comments and docstrings in which one clause has two relative pronouns."""
    for line, text in _comments(path):
        bare = re.sub(r"`+[^`]*`+", "", text)
        if any(len(RELATIVE.findall(clause)) > 1 for clause in re.split(r"[.;:]", bare)):
            yield f"{path.relative_to(ROOT)}:{line}: {text.strip()}"


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of comments and docstrings with their numbers."""
    source = path.read_text()
    if path.suffix != ".py":
        for number, row in enumerate(source.split("\n"), 1):
            if comment := re.search(r"(?:^|\s)//+\s?(.*)", row):
                yield number, comment.group(1)
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_docstring = token.type == tokenize.STRING and token.line.lstrip().startswith(('"""', 'r"""'))
        if token.type == tokenize.COMMENT or is_docstring:
            for offset, row in enumerate(token.string.split("\n")):
                yield token.start[0] + offset, row


def riddles(path: Path) -> Iterator[str]:
    """Yield the lines of comments and docstrings with a phrase that reads as a riddle."""
    for line, text in _comments(path):
        if match := RIDDLES.search(re.sub(r"`+[^`]*`+", "", text)):
            yield f"{path.relative_to(ROOT)}:{line}: {match.group()!r}: {text.strip()}"


def _native(path: Path) -> Iterator[tuple[int, str, str]]:
    is_inside = False
    for number, row in enumerate(path.read_text().split("\n"), 1):
        comment = re.search(r"(?:^|\s)//+\s?(.*)", row)
        if comment is None:
            is_inside = False
            continue
        text = comment.group(1)
        if not is_inside and OPENINGS.match(text):
            yield number, "opening", text
        is_inside = True
        yield from _terms(text, number)


def _page(path: Path) -> Iterator[tuple[int, str, str]]:
    for line, rule, text in _terms(path.read_text(), 1):
        if "station" not in rule or path.parent.name == "decisions":  # the tutorial is about pumps
            yield line, rule, text


if __name__ == "__main__":
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [path for path in (*PYTHON, *NATIVE, *PAGES) if part in str(path)]
    for path in chosen:
        for offence in offences(path):
            print(offence)
        if path.suffix != ".md":
            print(*riddles(path), *chained(path), sep="\n", end="")
