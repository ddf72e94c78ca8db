"""Stand-ins for pgmpy and pyAgrum: as much of their interfaces as elimina uses, so that its side is always tested."""

from __future__ import annotations

from types import ModuleType

import numpy as np


class DiscreteFactor:
    def __init__(self, variables, cardinality, values, state_names=None):
        self.variables = list(variables)
        self.values = np.asarray(values, dtype=float).reshape(cardinality)
        sizes = zip(variables, cardinality, strict=True)
        self.state_names = dict(state_names) if state_names else {v: list(range(n)) for v, n in sizes}
        assert [len(self.state_names[v]) for v in variables] == list(cardinality)


class TabularCPD(DiscreteFactor):
    def __init__(self, variable, variable_card, values, evidence=None, evidence_card=None, state_names=None):
        assert np.shape(values) == (variable_card, int(np.prod(evidence_card or [1])))
        variables, sizes = [variable, *(evidence or [])], [variable_card, *(evidence_card or [])]
        super().__init__(variables, sizes, values, state_names)


class Graph:
    def __init__(self):
        self._nodes, self.edges = {}, []

    def add_nodes_from(self, nodes):
        self._nodes.update(dict.fromkeys(nodes))

    def add_edges_from(self, edges):
        self.edges += edges
        assert all(v in self._nodes for edge in edges for v in edge)

    def nodes(self):
        return list(self._nodes)


class DiscreteBayesianNetwork(Graph):
    def add_cpds(self, *cpds):
        self._cpds = [*getattr(self, "_cpds", []), *cpds]
        assert all((v, cpd.variables[0]) in self.edges for cpd in cpds for v in cpd.variables[1:])

    def get_cpds(self):
        return self._cpds


class DiscreteMarkovNetwork(Graph):
    def add_factors(self, *factors):
        self._factors = [*getattr(self, "_factors", []), *factors]
        assert all(set(factor.variables) <= set(self._nodes) for factor in factors)

    def get_factors(self):
        return self._factors


class FactorGraph(DiscreteMarkovNetwork):
    def get_factor_nodes(self):
        return self._factors


def pgmpy() -> dict[str, ModuleType]:
    package, models, factors, discrete = (
        ModuleType(name) for name in ("pgmpy", "pgmpy.models", "pgmpy.factors", "pgmpy.factors.discrete")
    )
    package.models, package.factors, factors.discrete = models, factors, discrete
    models.DiscreteBayesianNetwork, models.DiscreteMarkovNetwork = DiscreteBayesianNetwork, DiscreteMarkovNetwork
    models.FactorGraph = FactorGraph
    discrete.DiscreteFactor, discrete.TabularCPD = DiscreteFactor, TabularCPD
    return {module.__name__: module for module in (package, models, factors, discrete)}


VARIABLE_TYPES = {"VarType_LABELIZED": 1, "VarType_INTEGER": 2, "VarType_RANGE": 4}


class LabelizedVariable:
    kind = VARIABLE_TYPES["VarType_LABELIZED"]

    def __init__(self, name, description, labels):
        self._name, self._labels = name, tuple(labels)

    def varType(self):
        return self.kind

    def name(self):
        return self._name

    def labels(self):
        return self._labels


class IntegerVariable(LabelizedVariable):
    kind = VARIABLE_TYPES["VarType_INTEGER"]

    def __init__(self, name, description, values):
        super().__init__(name, description, map(str, sorted(values)))


class RangeVariable(LabelizedVariable):
    kind = VARIABLE_TYPES["VarType_RANGE"]

    def __init__(self, name, description, first, last):
        super().__init__(name, description, map(str, range(first, last + 1)))


class Tensor:
    """Values in pyAgrum's order: the first variable varies fastest."""

    def __init__(self, variables):
        self._variables = list(variables)
        self.fillWith([0.0] * int(np.prod([len(v.labels()) for v in variables])))

    @property
    def names(self):
        return tuple(v.name() for v in self._variables)

    def add(self, variable):
        self.__init__([*self._variables, variable])

    def fillWith(self, values):
        self._array = np.array(values, dtype=float).reshape([len(v.labels()) for v in self._variables][::-1])

    def as_nparray(self):
        return self._array

    def toarray(self):
        return self._array

    def get(self, cell):
        return float(self._array[tuple(cell.states[::-1])])


class Instantiation:
    """A state of each variable of a tensor."""

    def __init__(self, tensor):
        self.states = [0] * len(tensor.names)

    def chgVal(self, place, state):
        self.states[place] = state


class Graphical:
    def __init__(self):
        self._variables, self._properties = [], {}

    def add(self, variable):
        self._variables.append(variable)

    def nodes(self):
        return set(range(len(self._variables)))

    def variable(self, key):
        return self._variables[key] if isinstance(key, int) else next(v for v in self._variables if v.name() == key)

    def setProperty(self, key, value):
        self._properties[key] = value

    def propertyWithDefault(self, key, default):
        return self._properties.get(key, default)


class BayesNet(Graphical):
    def __init__(self):
        super().__init__()
        self._cpts = {}

    def add(self, variable):
        super().add(variable)
        self._cpts[variable.name()] = Tensor([variable])

    def addArc(self, parent, child):
        self._cpts[child].add(self.variable(parent))

    def cpt(self, key):
        return self._cpts[self.variable(key).name()]


class MarkovRandomField(Graphical):
    def __init__(self):
        super().__init__()
        self._factors = {}

    def addFactor(self, names):
        key = frozenset(names)
        assert key not in self._factors
        self._factors[key] = Tensor([self.variable(v) for v in names])
        return self._factors[key]

    def factors(self):
        return list(self._factors)

    def factor(self, key):
        return self._factors[frozenset(key)]


def pyagrum() -> dict[str, ModuleType]:
    module = ModuleType("pyagrum")
    module.BayesNet, module.MarkovRandomField = BayesNet, MarkovRandomField
    module.LabelizedVariable, module.IntegerVariable = LabelizedVariable, IntegerVariable
    module.RangeVariable, module.Instantiation = RangeVariable, Instantiation
    vars(module).update(VARIABLE_TYPES)
    return {"pyagrum": module}
