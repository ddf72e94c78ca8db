"""Plans with tables on the device, in host memory and on disk: the form ``planning.tiers`` on this host."""

from __future__ import annotations

from elimina import arguments
from elimina.backends.cpu import CpuBackend
from elimina.planning.plan import Plan
from elimina.planning.tiers import in_tiers
from elimina.running.form_search import FormSearch


def in_memory_tiers(search: FormSearch) -> Plan:
    """Return the whole plan of a search, with tables in tiers of memory."""
    options = search.options
    host = CpuBackend(options.threads).memory()
    return in_tiers(search.whole, host, arguments.path("scratch", options.scratch))
