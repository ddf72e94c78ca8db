"""Distributed constraint optimisation: problems whose variables belong to agents."""

from elimina.dcop.formats import read, write
from elimina.dcop.problem import AgentProfile, Problem

__all__ = ["AgentProfile", "Problem", "read", "write"]
