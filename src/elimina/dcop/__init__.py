"""Distributed constraint optimisation: problems, with an agent as owner of each variable, and the agents."""

from elimina.dcop.agent import Agent
from elimina.dcop.formats import read, write
from elimina.dcop.problem import AgentProfile, Problem
from elimina.dcop.simulator import Network
from elimina.dcop.solve import AgentOptions, solve

__all__ = ["Agent", "AgentOptions", "AgentProfile", "Network", "Problem", "read", "solve", "write"]
