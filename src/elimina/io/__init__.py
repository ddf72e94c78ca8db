"""Files: a module for each format of models, one table of all formats, and tables of cases and of posteriors."""

from elimina.io.evidence_files import read_evidence
from elimina.io.model_files import FORMATS, read, write
from elimina.model.senses import convert_sense

__all__ = ["FORMATS", "convert_sense", "read", "read_evidence", "write"]
