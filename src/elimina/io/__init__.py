"""Files: a module for each format of models, one table of all formats, and tables of cases and of posteriors."""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from elimina.io.evidence_files import read_evidence
    from elimina.io.model_files import FORMATS, read, write
    from elimina.model.senses import convert_sense

__all__ = ["FORMATS", "convert_sense", "read", "read_evidence", "write"]

_HOMES = {
    "FORMATS": "elimina.io.model_files",
    "convert_sense": "elimina.model.senses",
    "read": "elimina.io.model_files",
    "read_evidence": "elimina.io.evidence_files",
    "write": "elimina.io.model_files",
}
"""Modules of the public names, which are loaded when first used: models in memory need no formats."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
