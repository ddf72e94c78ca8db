#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "dcop/agreement.hpp"
#include "dcop/passes.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::dcop {
namespace {

nb::list listed(const std::vector<Sent>& sent) {
  nb::list found;
  for (const auto& [target, body] : sent) found.append(nb::make_tuple(target, int(body.kind), body.first, body.second));
  return found;
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
  nb::dict found;
  for (const auto& [variable, visit] : traversal.above()) found[nb::int_(variable)] = visit;
  return found;
}

// Traversals in the order of their variables, and the agents that own these.
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
      if (!traversal || traversal->variable() != v) throw nb::value_error("traversals are given in the order of their variables");
      // Parents and children are neighbours.
      if (!std::ranges::all_of(traversal->neighbours(), is_variable)) throw nb::value_error("a neighbour is no variable");
    }
  }
};

Delivery delivery_of(const std::string& order, double delay, double jitter, i64 seed) {
  return {order == "time" ? Order::time : order == "fifo" ? Order::fifo : Order::random, delay, jitter, std::uint64_t(seed)};
}

nb::tuple agreed(std::vector<Traversal*> traversals, std::vector<int> owners, int agents, const std::string& order, double delay, double jitter, i64 seed,
                 nb::callable poll) {
  const Team team{std::move(traversals), std::move(owners), agents};
  team.check();
  const Agreement made = agree(team.traversals, team.owners, agents, delivery_of(order, delay, jitter, seed), [&] { poll(0); });
  return nb::make_tuple(std::vector<i64>(made.messages.begin(), made.messages.end()), made.clocks);
}

nb::tuple passed(std::vector<Traversal*> traversals, std::vector<int> owners, std::vector<double> clocks, const std::vector<i64>& operations, double pace,
                 const std::string& order, double delay, double jitter, i64 seed, nb::callable poll) {
  const Team team{std::move(traversals), std::move(owners), int(clocks.size())};
  team.check();
  if (operations.size() != team.owners.size()) throw nb::value_error("each variable has its operations");
  for (const Traversal* traversal : team.traversals)
    if (!traversal->done()) throw nb::value_error("a traversal has not come to its end");
  const Chain longest = pass(team.traversals, team.owners, std::move(clocks), operations, pace, delivery_of(order, delay, jitter, seed), [&] { poll(0); });
  return nb::make_tuple(longest.seconds, longest.operations);
}

}  // namespace

void bind_dcop(nb::module_& m) {
  nb::class_<Traversal>(m, "Traversal", "One variable's part in the construction of a pseudo-tree.")
      .def(nb::init<int, i64, std::vector<int>, bool>(), "variable"_a, "rank"_a, "neighbours"_a, "prefers_reached"_a,
           "A variable, its rank, and those that share a cost function with it, sorted; true if the token goes first to those neighbours that have most "
           "visited ones of their own, whatever their ranks.")
      .def("start", &start, "Messages to the neighbours: a target, the number of the kind, and two numbers.")
      .def("receive", &receive, "source"_a, "kind"_a, "first"_a, "second"_a, "React to a message from another variable.")
      .def_prop_ro("visit", &Traversal::visit, "Number of the token's first visit within this component, from 0 on; -1 before it.")
      .def_prop_ro("parent", &Traversal::parent, "The variable that the token came from; -1 if there is none.")
      .def_prop_ro("is_done", &Traversal::done, "True if the token has left for good.")
      .def_prop_ro("children", [](const Traversal& own) { return own.children(); }, "The variables that the token went to from here, in this order.")
      .def_prop_ro("above", &above, "Neighbours that are ancestors, and their visits.")
      .def("__getstate__", &Traversal::state)
      .def("__setstate__", [](Traversal& own, const std::vector<i64>& state) { new (&own) Traversal(Traversal::of_state(state)); });
  m.def("agree_on_tree", &agreed, "traversals"_a, "owners"_a, "agents"_a, "order"_a, "delay"_a, "jitter"_a, "seed"_a, "poll"_a,
        "Run traversals that have not started to their end, as agents of one process. `poll`: called with 0 now and then; the run ends where it raises. "
        "Returns the messages between agents by kind, and the clock of each agent in seconds.");
  m.def("pass_messages", &passed, "traversals"_a, "owners"_a, "clocks"_a, "operations"_a, "pace"_a, "order"_a, "delay"_a, "jitter"_a, "seed"_a, "poll"_a,
        "Deliver the UTIL and VALUE messages of a pseudo-tree's agents, without contents. `clocks`: of each agent, in seconds. `operations`: work of eliminating "
        "each variable. `pace`: seconds of an operation. Returns the latest clock, and the operations on the longest chain of messages.");
}

}  // namespace elimina::dcop
