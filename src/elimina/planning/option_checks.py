"""Checks of a call's options: their values, and their compatibility with each other, the task and the algorithm."""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any

from elimina import arguments
from elimina.errors import InputError
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_table import OPTIONS, Engine, OptionRecord
from elimina.planning.option_values import joined
from elimina.planning.options import AnyOptions, Options, replace
from elimina.problem.tasks import Task, described

_PLAIN = frozenset((str, int, arguments.Bytes, float, bool, type(None)))
"""Types of option values whose checks may be cached."""

_values_of = operator.attrgetter(*(field.name for field in fields(Options)))
"""Function that returns the values of options in the order of the fields."""


def options_of(
    options: Options,
    device: str | Sequence[str] | None = None,
    memory: int | str | None = None,
    k: int | None = None,
) -> Options:
    """Return a call's options, with those given as arguments replaced.

    Raises:
        TypeError: ``options`` has the wrong type.
    """
    if not isinstance(options, Options):
        raise arguments.wrong_type("options", options, "elimina.Options")
    arguments_of_call: dict[str, Any] = {"device": device, "memory": memory, "k": k}
    given_arguments = {name: value for name, value in arguments_of_call.items() if value is not None}
    return replace(options, **given_arguments) if given_arguments else options


def plan_options(options: AnyOptions) -> AnyOptions:
    """Return a copy of options in which all options that planning does not use have their defaults."""
    return replace(options, **{record.name: record.default for record in OPTIONS if record.scope == "run"})


def check_options(
    options: Options, task: Task | None = None, is_run: bool = False, engine: Engine | None = None
) -> CheckedOptions:
    """Check options as far as possible without a model, and return them with plain values.

    Args:
        options: Options of a call.
        task: Task to check the options against; None: check only the values of the options.
        is_run: True if the plan will also run.
        engine: Algorithm that accepts some of the options; None: all options are allowed.

    Raises:
        TypeError: An option has the wrong type.
        InputError: An option is invalid, or incompatible with the other options, the task or the algorithm.
    """
    # Only plain values are cached: other objects may change or use much memory, and a directory may be deleted.
    values: tuple[Hashable, ...] = _values_of(options)
    if options.scratch is None and _PLAIN.issuperset(map(type, values)):
        return _checked_before(task, is_run, engine, *values)
    return _checked(options, task, is_run, engine)


@functools.lru_cache(64, typed=True)
def _checked_before(task: Task | None, is_run: bool, engine: Engine | None, *values: Any) -> CheckedOptions:
    """Return checked options from a cache, because a check takes a third of a small model's time."""
    return _checked(Options(*values), task, is_run, engine)


def _checked(options: Options, task: Task | None, is_run: bool, engine: Engine | None) -> CheckedOptions:
    if engine is not None:
        _check_engine(options, engine)
    # Defaults already have their plain form.
    changed_values = {
        record.name: record.values.check(record.name, value)
        for record in OPTIONS
        if (value := getattr(options, record.name)) is not record.default
    }
    checked = CheckedOptions(**changed_values)
    if is_run and task is not None and checked.solving.bounds and checked.ibound is None:
        has_mini_buckets = described(task).has_bounds and not described(task).keeps_query
        checked = replace(checked, ibound="auto") if has_mini_buckets else checked
    for record in _changed_records(checked):
        _check_clashes(checked, record, task, is_run)
    if checked.scratch is not None:
        from elimina.planning.tiers import check_scratch

        check_scratch(str(checked.scratch))
    return checked


def _changed_records(options: Options) -> list[OptionRecord]:
    """Return the records of options whose values differ from the default."""
    return [
        record
        for record in OPTIONS
        if (value := getattr(options, record.name)) is not record.default
        and (not isinstance(value, str | float) or value != record.default)
    ]


def _check_engine(options: Options, engine: Engine) -> None:
    """Reject options that an algorithm does not support."""
    for record in _changed_records(options):
        if engine not in record.engines:
            names = ", ".join(record.name for record in OPTIONS if engine in record.engines)
            raise InputError(f"{engine} does not take the option {record.name}; it takes {names}")


def _check_clashes(options: CheckedOptions, record: OptionRecord, task: Task | None, is_run: bool) -> None:
    """Reject an option that is incompatible with the task, the method or another option."""
    if task is not None and record.tasks is not None and not record.tasks(described(task)):
        raise InputError(f"{record.noun} is for {record.tasks_text}: leave it out for {task}")
    if is_run and record.methods and options.method not in record.methods:
        names = joined(record.methods)
        reason = f"is for the methods {names}, not {options.method}: choose one of them, or leave it out"
        raise InputError(f"{record.noun} {reason}")
    for clash in record.clashes:
        if (task is not None or not clash.needs_task) and clash.is_broken(options, task or ""):
            reason = clash.reason if is_run or clash.reason_of_plan is None else clash.reason_of_plan
            raise InputError(reason.format(task=task, **vars(options)))
