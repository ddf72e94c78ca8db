"""Reports: one self-contained page about a model, its plan and its answer."""

from elimina.reporting.writing import Report, report

__all__ = ["Report", "report"]
