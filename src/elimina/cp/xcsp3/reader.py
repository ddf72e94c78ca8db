"""XCSP3 files as constraint models: variables, groups, blocks, and an objective."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path

from elimina._core import TextError
from elimina.cp.expressions import Expression
from elimina.cp.model import Model
from elimina.cp.xcsp3.constraints import CONSTRAINTS, Arguments
from elimina.cp.xcsp3.elements import ElementContents
from elimina.cp.xcsp3.terms import MAX_ITEMS, Array, Terms, number, span, tokens
from elimina.errors import InputError, UnsupportedError
from elimina.io.parsing import reraise
from elimina.io.xml_documents import Document, Element
from elimina.number_texts import counted

_PLACEHOLDER = re.compile(r"%(\d+|\.\.\.)")
_SYMBOL = re.compile(r"[A-Za-z_]\w*")
_SYMBOL_IN_TEXT = re.compile(r"(?<![\w%])[A-Za-z_]\w*(?![\w(\[])")
_OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge", "in", "notin")
_SECTIONS = ("variables", "constraints", "objectives", "annotations")


class Reader:
    """A reader of a document's variables, then of its constraints, then of its objectives.

    In the file, these sections may be in any order.

    Args:
        document: The file; its ``line`` is set to that of the element being read.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._model = Model()
        self._terms = Terms(self._model)
        self._domains: dict[str, str] = {}
        self._symbols: dict[str, int] = {}
        self._is_symbolic = False

    def model_of(self, root: Element) -> Model:
        """Return the problem below the outermost element.

        Raises:
            TextError: The file is malformed.
            UnsupportedError: An element is not supported.
        """
        kind = root.attributes.get("type", "CSP")
        if root.attributes.get("format") != "XCSP3":
            raise TextError('expected <instance format="XCSP3">')
        if kind not in ("CSP", "COP"):
            raise UnsupportedError(f"problems of the type {kind} are not supported; CSP and COP are")
        for section in self._document.visit(root):
            if section.tag not in _SECTIONS:
                raise TextError(f"expected one of {', '.join(_SECTIONS)}, found <{section.tag}>")
            # Annotations only advise the search, so they are ignored.
            if section.tag != "annotations":
                _check_frame(section, *(("combination",) if section.tag == "objectives" else ()))
        _check_frame(root, "format", "type")
        for tag, read in (("variables", self._variable), ("constraints", self._constraint)):
            for section in [child for child in root.children if child.tag == tag]:
                for child in self._document.visit(section):
                    read(self._with_numbers(child) if tag == "constraints" else child)
        sections = [self._with_numbers(child) for child in root.children if child.tag == "objectives"]
        aims = [objective for section in sections for objective in section.children]
        if len(aims) > 1 and any(section.attributes.get("combination") != "lexico" for section in sections):
            self._document.line = aims[1].line
            raise UnsupportedError('several objectives are supported in turn only: <objectives combination="lexico">')
        expressions = []
        for aim in aims:
            self._document.line = aim.line
            expressions.append(self._objective(aim) * (1 if aim.tag == aims[0].tag else -1))
        if aims:
            (self._model.minimize if aims[0].tag == "minimize" else self._model.maximize)(expressions)
        return self._model

    def _variable(self, element: Element) -> None:
        contents = ElementContents(element)
        kind = contents.attribute("type", "integer")
        if kind not in ("integer", "symbolic"):
            raise UnsupportedError(f"variables of the type {kind} are not supported")
        self._is_symbolic = kind == "symbolic" or "as" in element.attributes
        name = contents.attribute("id", "")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise TextError(f"expected a name of a variable as id, found {name[:40]!r}")
        if name in self._terms.variables or name in self._terms.arrays:
            raise TextError(f"there are two variables {name!r}")
        if element.tag == "var":
            domain = self._domain_of(contents)
            self._domains[name] = domain
            self._terms.variables[name] = self._new_variable(domain, name)
        elif element.tag == "array":
            self._array(contents, name)
        else:
            raise TextError(f"expected <var> or <array>, found <{element.tag}>")
        contents.check()

    def _domain_of(self, contents: ElementContents) -> str:
        like = contents.attribute("as", "")
        if not like:
            return contents.text
        if like not in self._domains:
            raise TextError(f"there is no variable {like[:40]!r} with the domain")
        return self._domains[like]

    def _array(self, contents: ElementContents, name: str) -> None:
        size = contents.attribute("size", "")
        sizes = [number(size_text) for size_text in re.findall(r"\[([^\[\]]*)\]", size)]
        if not sizes or min(sizes) < 1:
            raise TextError(f"expected sizes such as [3][4], found {size[:40]!r}")
        if math.prod(sizes) > MAX_ITEMS:
            raise UnsupportedError(
                f"the array {name} has {math.prod(sizes):,} variables; at most {MAX_ITEMS:,} are supported"
            )
        starts = [number(start) for start in re.findall(r"-?\d+", contents.attribute("startIndex", "0"))]
        starts = starts if len(starts) == len(sizes) else starts[:1] * len(sizes)
        array = Array(sizes, starts, [None] * math.prod(sizes))
        domains: list[str | None] = [None] * math.prod(sizes)
        domain_elements = contents.all("domain")
        element_names = [
            f"{name}{''.join(f'[{i}]' for i in index)}"
            for index in itertools.product(*(range(a, a + n) for a, n in zip(starts, sizes, strict=True)))
        ]
        if domain_elements:
            self._spread(domain_elements, name, array, element_names, domains)
        else:
            domain = self._domain_of(contents)
            self._domains[name] = domain
            domains = [domain] * len(domains)
        for flat, (element_name, text) in enumerate(zip(element_names, domains, strict=True)):
            if text is not None:
                array.elements[flat] = self._new_variable(text, element_name)
                self._domains[element_name] = text
        self._terms.arrays[name] = array

    def _spread(
        self,
        domain_elements: Sequence[ElementContents],
        name: str,
        array: Array,
        element_names: list[str],
        domains: list[str | None],
    ) -> None:
        """Assign listed domains to the elements of an array."""
        flat_of = {element_name: flat for flat, element_name in enumerate(element_names)}
        scratch = Terms(Model(), {}, {name: Array(array.sizes, array.starts, [])})
        stand_ins: list[Expression | None] = [scratch.model.bool_var(element_name) for element_name in element_names]
        scratch.arrays[name].elements = stand_ins
        for domain_element in domain_elements:
            self._document.line = domain_element.line
            named = domain_element.attribute("for", "others")
            if named == "others":
                chosen = [flat for flat, domain in enumerate(domains) if domain is None]
            else:
                chosen = [flat_of[element_name] for token in named.split() for element_name in scratch.names(token)]
            text = domain_element.text  # "others" may have no elements left
            for flat in chosen:
                domains[flat] = text

    def _new_variable(self, domain: str, name: str) -> Expression:
        tokens = domain.split()
        if not tokens:
            raise TextError(f"the variable {name} has an empty domain")
        if len(tokens) == 1 and ".." in tokens[0]:
            ends = tokens[0].split("..")
            return self._model.int_var(number(ends[0]), number(ends[-1]), name)
        values: list[int] = []
        for token in tokens:
            values += span(token) if ".." in token else [self._value_of(token)]
        return self._model.int_var(values, name=name)

    def _value_of(self, text: str) -> int:
        """Return a value of a domain; symbols are numbered in the order of the file.

        Raises:
            UnsupportedError: A symbol has the name of an operator.
        """
        if not (self._is_symbolic and _SYMBOL.fullmatch(text)):
            return number(text)
        if text in _OPERATORS:
            raise UnsupportedError(f"the symbol {text} has the name of an operator; rename it")
        return self._symbols.setdefault(text, len(self._symbols))

    def _with_numbers(self, element: Element) -> Element:
        """Return an element with numbers in place of symbols."""
        if not self._symbols:
            return element

        def numbered(match: re.Match[str]) -> str:
            symbol = match[0]
            if symbol not in self._symbols:
                return symbol
            if symbol in self._terms.variables or symbol in self._terms.arrays:
                raise UnsupportedError(f"the symbol {symbol} has the name of a variable; rename one of them")
            return str(self._symbols[symbol])

        changed = Element(element.tag, element.attributes, element.line)
        changed.add_text(_SYMBOL_IN_TEXT.sub(numbered, element.raw_text))
        changed.children = [self._with_numbers(child) for child in element.children]
        return changed

    def _constraint(self, element: Element) -> None:
        self._document.line = element.line
        if element.tag == "block":
            _check_frame(element)
            for child in element.children:
                self._constraint(child)
        elif element.tag == "group":
            self._group(element)
        elif element.tag == "slide":
            self._slide(element)
        elif element.tag in CONSTRAINTS:
            contents = ElementContents(element)
            CONSTRAINTS[element.tag](self._terms, Arguments(contents))
            contents.check()
        else:
            raise UnsupportedError(f"the constraint <{element.tag}> is not supported")

    def _group(self, element: Element) -> None:
        if not element.children or any(child.tag != "args" for child in element.children[1:]):
            raise TextError("expected a constraint and then <args> in <group>")
        _check_frame(element)
        template = element.children[0]
        for replacement in element.children[1:]:
            self._document.line = replacement.line
            contents = ElementContents(replacement)
            arguments = [name for token in tokens(contents.text) for name in self._terms.names(token)]
            contents.check()
            self._constraint(_filled(template, arguments, _highest(template)))

    def _slide(self, element: Element) -> None:
        if not element.children:
            raise TextError("expected a list and a constraint in <slide>")
        contents = ElementContents(element)
        lists, template = contents.all("list"), element.children[-1]
        if not lists or len(lists) != len(element.children) - 1:
            raise TextError("expected lists and then a constraint in <slide>")
        contents.all(template.tag)
        names = [[name for token in tokens(each.text) for name in self._terms.names(token)] for each in lists]
        width = _highest(template) + 1
        steps = [number(each.attribute("offset", "1")) for each in lists]
        # If there is a single list, each constraint takes as many of its variables as the template has placeholders.
        widths = [number(each.attribute("collect", "1")) for each in lists] if len(lists) > 1 else [width]
        if len(lists) == 1:
            lists[0].attribute("collect", "1")
        if sum(widths) != width:
            raise TextError(f"<slide> collects {counted(sum(widths), 'variable')} for a constraint of {width}")
        for each, size, step in zip(names, widths, steps, strict=True):
            if step < 1 or not 0 < size <= len(each):
                raise TextError(
                    f"<slide> has {counted(len(each), 'variable')}, {size} at a time with an offset of {step}"
                )
        for listed in lists:
            listed.check()
        is_circular = contents.attribute("circular", "false") == "true"
        last = len(names[0]) if is_circular else len(names[0]) - widths[0] + 1
        _check_frame(element, "circular")
        for shift in range(math.ceil(last / steps[0])):
            window: list[str] = []
            for each, size, step in zip(names, widths, steps, strict=True):
                if not is_circular and shift * step + size > len(each):
                    raise TextError(
                        f"<slide> has too few variables in a list of {len(each)}, next to one of {len(names[0])}"
                    )
                window += [each[(shift * step + i) % len(each)] for i in range(size)]
            self._constraint(_filled(template, window, width - 1))

    def _objective(self, element: Element) -> Expression:
        if element.tag not in ("minimize", "maximize"):
            raise TextError(f"expected <minimize> or <maximize>, found <{element.tag}>")
        contents = ElementContents(element)
        kind = contents.attribute("type", "expression")
        replacement = Arguments(contents)
        model, terms = self._model, self._terms
        if kind == "expression":
            objective = terms.value(contents.text)
        elif kind == "sum":
            objective = replacement.sum(terms)
        elif kind in ("minimum", "maximum", "nValues", "product"):
            xs = replacement.weighted(terms)
            if kind == "product":
                objective = terms.product(xs)
            else:
                objective = {"minimum": model.minimum, "maximum": model.maximum, "nValues": model.distinct_values}[
                    kind
                ](xs)
        else:
            raise UnsupportedError(f"an objective of the type {kind} is not supported")
        contents.check()
        return model.expression(objective)


def _check_frame(element: Element, *attributes: str) -> None:
    """Check that an element has no text and only the given attributes; its children are read elsewhere."""
    frame = Element(element.tag, element.attributes, element.line)
    frame.add_text(element.raw_text)
    contents = ElementContents(frame)
    for name in attributes:
        contents.attribute(name, "")
    contents.check()


def _highest(template: Element) -> int:
    """Return the highest number of a placeholder; -1 if there is none."""
    numbers = [int(digits) for digits in _PLACEHOLDER.findall(template.raw_text) if digits != "..."]
    return max([-1, *numbers, *map(_highest, template.children)])


def _filled(template: Element, arguments: Sequence[str], highest: int) -> Element:
    """Return a template with arguments in place of placeholders.

    ``%...`` stands for all arguments after the one with the highest number.
    """

    def argument(match: re.Match[str]) -> str:
        if match[1] == "...":
            return " ".join(arguments[highest + 1 :])
        if int(match[1]) >= len(arguments):
            raise TextError(f"there is no argument for {match[0]}")
        return arguments[int(match[1])]

    filled = Element(template.tag, template.attributes, template.line)
    filled.add_text(_PLACEHOLDER.sub(argument, template.raw_text))
    filled.children = [_filled(child, arguments, highest) for child in template.children]
    return filled


ROOT = "instance"


def read_xcsp3(path: Path, data: bytes) -> Model:
    """Read a problem; its variables have the names of the file: ``model["x"]``, ``model["q[1][2]"]``.

    Args:
        path: The file, for errors.
        data: Content of the file.

    Raises:
        FormatError: The file is malformed; it names the line.
        UnsupportedError: An element is not supported.
    """
    document = Document(data)
    try:
        return Reader(document).model_of(document.root(ROOT))
    except (TextError, UnsupportedError) as error:
        reraise(path, document.line, error, document.column)
    except RecursionError:
        reraise(path, document.line, TextError("the nesting is too deep"))
    except InputError as error:
        # The solver rejects an argument that comes from the file.
        reraise(path, document.line, TextError(str(error)))
