"""Dask clusters: agents of distributed problems, slices of plans, searches and batches of cases on their workers."""

from elimina.distributed.agents import solve_agents
from elimina.distributed.cluster import connected, local
from elimina.distributed.optimum import solve_optimum
from elimina.distributed.slices import ClusterBatch, solve_slices

__all__ = ["ClusterBatch", "connected", "local", "solve_agents", "solve_optimum", "solve_slices"]
