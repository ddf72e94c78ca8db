#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "dcop/agreement.hpp"
#include "dcop/passes.hpp"
#include "dcop/team.hpp"
#include "dcop/work.hpp"
#include "module.hpp"
#include "table_list.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::dcop {
namespace {

nb::list listed(const std::vector<Sent>& sent) {
  nb::list messages;
  for (const auto& [target, body] : sent)
    messages.append(nb::make_tuple(target, int(body.kind), body.first, body.second));
  return messages;
}

nb::list start(Traversal& traversal) {
  std::vector<Sent> sent;
  traversal.start(sent);
  return listed(sent);
}

nb::list receive(Traversal& traversal, int source, int kind, i64 first, i64 second) {
  if (kind < 0 || kind >= kKinds) throw nb::value_error("there is no such kind of message");
  std::vector<Sent> sent;
  traversal.receive(source, {Kind(kind), first, second}, sent);
  return listed(sent);
}

nb::dict above(const Traversal& traversal) {
  nb::dict visits;
  for (const auto& [variable, visit] : traversal.above()) visits[nb::int_(variable)] = visit;
  return visits;
}

// The traversals of all variables in the order of their numbers, and the agents that own the variables.
struct Team {
  std::vector<Traversal*> traversals;
  std::vector<int> owners;
  int agents;

  void check() const {
    if (owners.size() != traversals.size()) throw nb::value_error("each variable has one owner");
    const int count = int(traversals.size());
    for (const int owner : owners)
      if (owner < 0 || owner >= agents) throw nb::value_error("an owner is no agent");
    const auto is_variable = [&](int v) { return v >= 0 && v < count; };
    for (int v = 0; v < count; ++v) {
      const Traversal* traversal = traversals[v];
      if (!traversal || traversal->variable() != v)
        throw nb::value_error("traversals are given in the order of their variables");
      // Parents and children are neighbours, so they need no check of their own.
      if (!std::ranges::all_of(traversal->neighbours(), is_variable))
        throw nb::value_error("a neighbour is no variable");
    }
  }

  void check(const Work& work) const {
    check();
    if (work.nodes.size() != owners.size()) throw nb::value_error("each variable has its work");
  }
};

void check_ended(std::span<Traversal* const> traversals) {
  for (const Traversal* traversal : traversals)
    if (!traversal->done()) throw nb::value_error("a traversal has not come to its end");
}

void check_scopes(const TableList& functions, i64 variables) {
  for (i64 number = 0; number < functions.tables.size(); ++number)
    for (const int v : functions.tables.scope(number))
      if (v < 0 || v >= variables) throw nb::value_error("a function has no such variable");
}

Delivery delivery_of(const std::string& order, double delay, double jitter, i64 seed) {
  return {order == "time"   ? Order::time
          : order == "fifo" ? Order::fifo
                            : Order::random,
          delay, jitter, std::uint64_t(seed)};
}

Agreement agreed(std::vector<Traversal*> traversals, std::vector<int> owners, int agents, const std::string& order,
                 double delay, double jitter, i64 seed, nb::callable poll) {
  const Team team{std::move(traversals), std::move(owners), agents};
  team.check();
  return agree(team.traversals, team.owners, agents, delivery_of(order, delay, jitter, seed), [&] { poll(0); });
}

std::vector<Traversal> made(const TableList& functions, i64 variables, i64 degree, const std::vector<i64>& ranks,
                            bool prefers_reached) {
  check_scopes(functions, variables);
  if (!ranks.empty() && i64(ranks.size()) != variables) throw nb::value_error("each variable has its rank");
  return traversals_of(functions.tables, variables, degree, ranks, prefers_reached);
}

struct TreeOfTraversals {
  std::shared_ptr<plan::PlannedTree> tree;
  int misplaced;
};

TreeOfTraversals tree_of(std::vector<Traversal*> traversals, const TableList& functions, std::vector<i64> sizes) {
  check_scopes(functions, i64(sizes.size()));
  if (sizes.size() != traversals.size()) throw nb::value_error("each variable has its size");
  check_ended(traversals);
  auto tree = std::make_shared<plan::PlannedTree>(pseudo_tree(traversals, functions.tables, std::move(sizes)));
  const int variable = misplaced(traversals, tree->tree);
  return {std::move(tree), variable};
}

std::optional<Work> work_of(const plan::PlannedTree& tree, const TableList& functions, const std::string& sense,
                            const std::vector<std::pair<i64, i64>>& types, i64 tables, i64 spread, i64 at_once,
                            i64 cell) {
  if (i64(with_variables(functions.tables).size()) != tree.scopes.size())
    throw nb::value_error("the tree is one of other functions");
  Rules rules{{}, tables, spread, at_once, cell};
  for (const auto& [largest, bytes] : types) rules.types.push_back({largest, bytes});
  return Work::of(tree, functions.tables, sense_of(sense), rules);
}

std::vector<std::pair<i64, int>> unplanned(const Work& work) {
  std::vector<std::pair<i64, int>> nodes;
  for (std::size_t number = 0; number < work.nodes.size(); ++number)
    if (work.nodes[number].operations < 0) nodes.emplace_back(number, work.nodes[number].type);
  return nodes;
}

void set_planned(Work& work, std::size_t number, i64 operations, i64 bytes) {
  if (number >= work.nodes.size()) throw nb::index_error("there is no such node");
  work.nodes[number].operations = operations;
  work.nodes[number].bytes = bytes;
}

Mail mail_of(const Work& work, std::vector<Traversal*> traversals, std::vector<int> owners, std::pair<i64, i64> util,
             std::pair<i64, i64> value) {
  const Team team{std::move(traversals), std::move(owners), std::numeric_limits<int>::max()};
  team.check(work);
  return mail(work, team.traversals, team.owners, {util.first, util.second}, {value.first, value.second});
}

Chain passed(std::vector<Traversal*> traversals, std::vector<int> owners, std::vector<double> clocks, const Work& work,
             double seconds, const std::string& order, double delay, double jitter, i64 seed, nb::callable poll) {
  const Team team{std::move(traversals), std::move(owners), int(clocks.size())};
  team.check(work);
  check_ended(team.traversals);
  std::vector<i64> operations(work.nodes.size());
  for (const Elimination& node : work.nodes) operations[node.variable] = node.operations;
  const double pace = seconds / double(std::max<i64>(1, work.total().operations));
  return pass(team.traversals, team.owners, std::move(clocks), operations, pace,
              delivery_of(order, delay, jitter, seed), [&] { poll(0); });
}

}  // namespace

void bind_dcop(nb::module_& m) {
  nb::class_<Traversal>(m, "Traversal", "One variable's part in the construction of a pseudo-tree.")
      .def(nb::init<int, i64, std::vector<int>, bool>(), "variable"_a, "rank"_a, "neighbours"_a, "prefers_reached"_a,
           "Prepare a variable with its rank and its neighbours, the variables that share a cost function with "
           "it, sorted. `prefers_reached`: the token goes first to the neighbours with the most visited "
           "neighbours, whatever their ranks.")
      .def("start", &start,
           "Return the first messages to neighbours: a target, the number of the kind, and two numbers for "
           "each.")
      .def("receive", &receive, "source"_a, "kind"_a, "first"_a, "second"_a,
           "React to a message from another variable; return messages in the form of `start`.")
      .def_prop_ro("visit", &Traversal::visit,
                   "Number of the token's first visit within this component, from 0 on; -1 before it.")
      .def_prop_ro("parent", &Traversal::parent, "Variable that the token came from; -1: none.")
      .def_prop_ro("is_done", &Traversal::done, "True if the token has left for good.")
      .def_prop_ro(
          "children", [](const Traversal& self) { return self.children(); },
          "Variables that the token went to from here, in this order.")
      .def_prop_ro("above", &above, "Neighbours that are ancestors -> their visits.")
      .def("__getstate__", &Traversal::state)
      .def("__setstate__",
           [](Traversal& self, const std::vector<i64>& state) { new (&self) Traversal(Traversal::of_state(state)); });
  nb::class_<Agreement>(m, "TraversalAgreement", "Messages of the agents that have built a pseudo-tree.")
      .def_ro("messages", &Agreement::messages, "Number of messages between agents, by kind.")
      .def_ro("clocks", &Agreement::clocks, "Clock of each agent, in seconds.");
  nb::class_<TreeOfTraversals>(m, "TreeOfTraversals", "The bucket tree in the order of a pseudo-tree.")
      .def_ro("tree", &TreeOfTraversals::tree)
      .def_ro("misplaced", &TreeOfTraversals::misplaced,
              "First variable whose parents in the two trees differ; -1: none.");
  m.def("agree_on_tree", &agreed, "traversals"_a, "owners"_a, "agents"_a, "order"_a, "delay"_a, "jitter"_a, "seed"_a,
        "poll"_a,
        "Run traversals that have not started to their end, as agents of one process. `poll`: called with 0 "
        "now and then; an exception of it ends the run.");
  m.def("make_traversals", &made, "functions"_a, "variables"_a, "degree"_a, "ranks"_a, "prefers_reached"_a,
        "Make a traversal for each variable. `degree`: weight of the number of neighbours in a variable's "
        "rank. `ranks`: addition for each variable; empty: none.");
  m.def("tree_of_traversals", &tree_of, "traversals"_a, "functions"_a, "sizes"_a,
        "Return the bucket tree of the cost functions in the order of the pseudo-tree.");
  nb::class_<Work::Total>(m, "AgentWorkTotal", "Figures of the work of all agents.")
      .def_ro("most_combinations", &Work::Total::most_combinations,
              "Largest number of combinations of values in a node: of its variable and its message's variables.")
      .def_ro("combinations", &Work::Total::combinations, "Sum of the combinations of all nodes, rounded.")
      .def_ro("cells", &Work::Total::cells, "Cells of the largest message.")
      .def_ro("operations", &Work::Total::operations, "Sum of the operations of all nodes.")
      .def_ro("bytes", &Work::Total::bytes, "Bytes of the largest step, inputs included.")
      .def_ro("type", &Work::Total::type, "Number of the widest type; -1: no tables.");
  nb::class_<Mail>(m, "AgentMail", "Messages between agents in each pass.")
      .def_ro("messages", &Mail::messages, "Number of messages of each pass.")
      .def_ro("util_bytes", &Mail::util, "Bytes of the UTIL messages.")
      .def_ro("value_bytes", &Mail::value, "Bytes of the VALUE messages.")
      .def_ro("largest_bytes", &Mail::largest, "Bytes of the largest message.");
  nb::class_<Chain>(m, "MessageChain", "The longest chain of messages.")
      .def_ro("seconds", &Chain::seconds, "The latest clock, in seconds.")
      .def_ro("operations", &Chain::operations, "Operations on the longest chain of messages.");
  nb::class_<Work>(m, "AgentWork",
                   "Work and messages of eliminating each variable of a pseudo-tree, computed in advance.")
      .def_prop_ro("unplanned", &unplanned,
                   "Nodes of the tree whose operations and bytes have to be planned, each with the number of its "
                   "message's type.")
      .def("plan", &set_planned, "node"_a, "operations"_a, "bytes"_a, "Set the planned operations and bytes of a node.")
      .def_prop_ro("total", &Work::total, nb::rv_policy::move, "Figures of all agents.")
      .def("mail", &mail_of, "traversals"_a, "owners"_a, "util"_a, "value"_a,
           "Count the messages between agents of each pass. `util`, `value`: bytes of a message besides its "
           "cells: a constant, and a number for each of its variables.");
  m.def("work_of_agents", &work_of, "tree"_a, "functions"_a, "sense"_a, "types"_a, "tables"_a, "spread"_a, "at_once"_a,
        "cell"_a,
        "Return the work of agents whose costs are integers; None if a function forbids everything, or no "
        "type is wide enough. `types`: largest number and bytes of each type, the narrowest first. "
        "`tables`: largest number of tables that a step adds. `spread`: limit on the spread of a variable's "
        "own costs. `at_once`, `cell`: largest number of combinations that buckets of all types but the "
        "last join as one array, and bytes of each combination.");
  m.def("pass_messages", &passed, "traversals"_a, "owners"_a, "clocks"_a, "work"_a, "seconds"_a, "order"_a, "delay"_a,
        "jitter"_a, "seed"_a, "poll"_a,
        "Deliver the UTIL and VALUE messages of a pseudo-tree's agents, without contents. `clocks`: clock "
        "of each agent, in seconds. `seconds`: time of all operations.");
}

}  // namespace elimina::dcop
