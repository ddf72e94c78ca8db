"""Readers and writers of files: models (a module for each format), evidence, tables of cases, and posteriors."""

from elimina.lazy_names import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from elimina.io.evidence_files import read_evidence
    from elimina.io.model_files import FORMATS, read, write
    from elimina.model.senses import convert_sense

__all__ = ["FORMATS", "convert_sense", "read", "read_evidence", "write"]

# Imported on first use: programs that build their models in memory need no readers of files.
__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "io.evidence_files": ("read_evidence",),
        "io.model_files": ("FORMATS", "read", "write"),
        "model.senses": ("convert_sense",),
    },
)
