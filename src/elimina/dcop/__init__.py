"""Distributed constraint optimisation: problems whose variables belong to agents, and agents to solve them."""

from elimina.dcop.agent import Agent
from elimina.dcop.formats import read, write
from elimina.dcop.network_settings import Network
from elimina.dcop.problem import AgentProfile, Problem
from elimina.dcop.solve import AgentOptions, solve

__all__ = ["Agent", "AgentOptions", "AgentProfile", "Network", "Problem", "read", "solve", "write"]


def __dir__() -> list[str]:
    return __all__
