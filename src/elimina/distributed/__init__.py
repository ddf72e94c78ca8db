"""Dask clusters: agents of distributed problems, slices of plans and batches of cases on their workers."""

from elimina.distributed.agents import solve_agents
from elimina.distributed.cluster import connected, local

__all__ = ["connected", "local", "solve_agents"]
