"""Reports: one self-contained page about a model, its plan and its answer."""

from elimina.reporting.subject import read_subject
from elimina.reporting.writer import Report, html_path, report

__all__ = ["Report", "html_path", "read_subject", "report"]


def __dir__() -> list[str]:
    return __all__
