#include "consistency/counted.hpp"
#include "consistency/search.hpp"
#include "network/reduction.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "argument_checks.hpp"
#include "arrays.hpp"
#include "costs.hpp"
#include "listener.hpp"
#include "module.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::consistency {
namespace {

void check_value(const Network& network, const std::vector<int>& value) {
  if (value.size() != network.size.size()) throw nb::value_error("there are other variables than values");
  for (Var v = 0; v < network.count(); ++v)
    if (value[network.order[v]] < 0 || value[network.order[v]] >= network.size[v])
      throw nb::index_error("there is no such value");
}

void make_search(Search* self, std::vector<int> sizes, Words<const std::int64_t> starts, Words<const Var> members,
                 const Costs& costs, std::vector<Var> order, Cost constant, Cost upper, Cost step, Cost slack,
                 int threads, std::int64_t count) {
  if (step < 1 || slack < 0) throw nb::value_error("the step is at least 1, the slack at least 0");
  if (upper < 0 || upper > elimina::network::forbidden / 4)
    throw nb::value_error("the upper bound is from 0 to a quarter of what is forbidden");
  if (threads < 1 || threads > 1024) throw nb::value_error("1 to 1024 threads are possible");
  if (count < 1) throw nb::value_error("at least one solution is searched for");
  check_sizes(sizes);
  if (constant < 0 || std::ranges::any_of(span_of(costs), [](Cost cost) { return cost < 0; }))
    throw nb::value_error("costs are at least 0");
  elimina::network::Network model = network_of(std::move(sizes), {starts, members}, costs, constant, upper);
  nb::gil_scoped_release release;
  new (self) Search(std::move(model), std::move(order), step, slack, threads, static_cast<std::size_t>(count));
}

nb::dict run(Search& search, double seconds, double nodes, double memory, nb::object poll) {
  if (std::isnan(seconds) || !(nodes >= 0) || !(memory >= 0))
    throw nb::value_error("the limits are numbers, nodes and memory at least 0");
  Ended ended;
  const Limits limits{seconds, static_cast<std::uint64_t>(std::min(nodes, 1e18)),
                      static_cast<std::size_t>(std::min(memory, 1e18)), listener_of(poll, ended)};
  const bool is_complete = unlocked([&] { return search.run(limits); });
  if (ended.raised) throw nb::python_error();
  nb::dict result;
  result["value"] = search.has_solution() ? search.best() : std::vector<int>{};
  result["cost"] = search.cost();
  result["bound"] = search.bound();
  result["done"] = is_complete;
  result["nodes"] = search.nodes();
  result["interrupted"] = ended.interrupted;
  return result;
}

struct OpenNodes {
  Array<std::int64_t> bounds, lengths, decisions;
};

OpenNodes take_open(Search& search) {
  std::vector<std::int64_t> bounds, lengths, words;
  const auto put = [&](const Decision& decision) {
    words.insert(words.end(), {decision.var, decision.value, static_cast<std::int64_t>(decision.rule)});
  };
  for (const Open& node : search.take_open()) {
    bounds.push_back(node.bound);
    lengths.push_back(static_cast<std::int64_t>(node.length) + (node.last.var >= 0));
    if (node.path) std::for_each_n(node.path->begin(), node.length, put);
    if (node.last.var >= 0) put(node.last);
  }
  return {array_of(std::move(bounds)), array_of(std::move(lengths)), array_of(std::move(words))};
}

Decision decision_of(const Network& network, const std::int64_t* words) {
  if (words[0] < 0 || words[0] >= network.count()) throw nb::index_error("there is no such variable");
  const Var v = static_cast<Var>(words[0]);
  if (words[1] < 0 || words[1] >= network.size[v]) throw nb::index_error("there is no such value");
  if (words[2] < 0 || words[2] > static_cast<int>(Rule::beyond)) throw nb::value_error("there is no such rule");
  return {v, static_cast<int>(words[1]), static_cast<Rule>(words[2])};
}

void replace_open(Search& search, const Words<const std::int64_t>& bounds, const Words<const std::int64_t>& lengths,
                  const Words<const std::int64_t>& words) {
  if (bounds.size() != lengths.size()) throw nb::value_error("each node has a bound and a length");
  std::vector<Open> open(bounds.size());
  std::size_t position = 0;
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (bounds(i) < 0) throw nb::value_error("bounds are at least 0");
    if (lengths(i) < 0 || static_cast<std::uint64_t>(lengths(i)) > (words.size() - position) / 3)
      throw nb::value_error("there are fewer decisions");
    std::vector<Decision> path;
    for (std::int64_t n = 0; n < lengths(i); ++n, position += 3)
      path.push_back(decision_of(search.network(), words.data() + position));
    open[i].bound = bounds(i);
    open[i].length = path.size();
    open[i].path = std::make_shared<const std::vector<Decision>>(std::move(path));
  }
  if (position != words.size()) throw nb::value_error("there are more decisions");
  search.replace_open(std::move(open));
}

using elimina::network::Reduction;

void make_reduction(Reduction* self, std::vector<int> sizes, Words<const std::int64_t> starts, Words<const Var> members,
                    const Costs& costs, const std::vector<Var>& order) {
  std::vector<Var> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < std::max(sorted.size(), sizes.size()); ++i)
    if (i >= sorted.size() || i >= sizes.size() || sorted[i] != static_cast<Var>(i))
      throw nb::value_error("the order has other variables than the model");
  const auto model = network_of(std::move(sizes), {starts, members}, costs, 0, elimina::network::forbidden);
  nb::gil_scoped_release release;
  new (self) Reduction(model, order);
}

std::vector<int> extend(const Reduction& reduction, const std::vector<int>& value) {
  if (value.size() != reduction.kept().size()) throw nb::value_error("there are other variables than values");
  for (std::size_t i = 0; i < value.size(); ++i)
    if (value[i] < 0 || value[i] >= reduction.rest().size[i]) throw nb::index_error("there is no such value");
  return reduction.extend(value);
}

std::vector<std::vector<int>> kept(const Search& search) {
  std::vector<std::vector<int>> result(search.network().size.size());
  for (Var v = 0; v < search.network().count(); ++v) {
    const auto values = search.root().state().values(v);
    result[search.network().order[v]].assign(values.begin(), values.end());
  }
  return result;
}

}  // namespace

void bind_consistency(nb::module_& m) {
  nb::class_<OpenNodes>(m, "OpenNodes", "Open nodes of a `ConsistencySearch`.")
      .def_ro("bounds", &OpenNodes::bounds, nb::rv_policy::reference, "Lower bounds of the nodes.")
      .def_ro("lengths", &OpenNodes::lengths, nb::rv_policy::reference, "Number of decisions of each node.")
      .def_ro("decisions", &OpenNodes::decisions, nb::rv_policy::reference,
              "Decisions of the nodes, one after another, three words each.");
  nb::class_<Reduction>(
      m, "Reduction",
      "Exact elimination of variables with at most three neighbours, in an order; at least one variable "
      "remains.")
      .def("__init__", &make_reduction, "sizes"_a, "starts"_a, "members"_a, "costs"_a, "order"_a)
      .def_prop_ro("kept", &Reduction::kept, "Remaining variables, by their numbers in the model.")
      .def_prop_ro(
          "rest", [](const Reduction& reduction) { return arrays_of(reduction.rest()); }, nb::rv_policy::move,
          "Remaining model.")
      .def_prop_ro(
          "is_packing", [](const Reduction& reduction) { return is_packing(reduction.rest()); },
          "True if most functions of the remaining model forbid a pair of values of two binary variables, and "
          "nothing else.")
      .def("extend", &extend, "value"_a,
           "Return the best assignment of all variables, given one of the remaining variables.");
  nb::class_<Search>(m, "ConsistencySearch",
                     "A search for the least sum of costs (at least 0, or FORBIDDEN_COST) below `upper`, by branch and "
                     "bound with soft local consistency.")
      .def("__init__", &make_search, "sizes"_a, "starts"_a, "members"_a, "costs"_a, "order"_a, "constant"_a, "upper"_a,
           "step"_a, "slack"_a, "threads"_a, "count"_a = 1,
           "Make the root consistent. `count`: number of best solutions to find; `run` returns the best one.")
      .def("run", &run, "seconds"_a, "nodes"_a, "memory"_a, "poll"_a,
           "Search until `nodes` nodes have been visited since the beginning. `poll` gets the bound, the best "
           "cost, the nodes and the best value if it is new (else None) now and then, and ends the search by "
           "False; so does an interruption.")
      .def(
          "update_incumbent",
          [](Search& search, Cost cost, const std::vector<int>& value) {
            check_value(search.network(), value);
            search.update_incumbent(cost, value);
          },
          "cost"_a, "value"_a, "Accept only solutions better than a given one, and try its values first.")
      .def(
          "add_solution",
          [](Search& search, const std::vector<int>& value) {
            check_value(search.network(), value);
            search.add_solution(value);
          },
          "value"_a, "Keep a solution as one of the best, and cheap ones near it.")
      .def(
          "at_root",
          [](const Search& search, const std::vector<int>& value) {
            check_value(search.network(), value);
            return std::min(search.root().at(search.network().inner(value)), elimina::network::forbidden);
          },
          "value"_a, "Return the cost of an assignment in the equivalent costs at the root.")
      .def("take_open", &take_open, "Remove all open nodes, and return them.")
      .def("replace_open", &replace_open, "bounds"_a, "lengths"_a, "decisions"_a,
           "Replace the open nodes by those that another search of the same model has returned.")
      .def(
          "solution",
          [](const Search& search, std::size_t rank) {
            if (rank >= search.solution_count()) throw nb::index_error("there is no such solution");
            return search.solution(rank);
          },
          "rank"_a, "Return one of the best solutions so far; 0 is the best.")
      .def_prop_ro("solution_count", &Search::solution_count, "Number of the best solutions that are kept.")
      .def_prop_ro("top", &Search::top, "Cost below which solutions are searched for.")
      .def_prop_ro("kept", &kept, "Remaining values of each variable at the root.")
      .def_prop_ro("bound", &Search::bound,
                   "Lower bound on the cost of the best solution; `top` if there is no solution below it.")
      .def_prop_ro("progress", &Search::progress, "Estimated share of the search tree that is searched.");
}

}  // namespace elimina::consistency
