#include "approx/linked_trees.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "approx/frugal_order.hpp"
#include "argument_checks.hpp"
#include "arrays.hpp"
#include "module.hpp"
#include "scope_lists.hpp"
#include "stop.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::approx {
namespace {

std::shared_ptr<RankedFactors> make_factors(Words<const i64> sizes, Words<const i64> starts, Words<const int> members,
                                            Words<const double> values) {
  std::vector<i64> states = list_of(sizes);
  check_sizes(states);
  const ScopeList scopes = scope_list_of(starts, members, states.size());
  double cells = 0;
  for (std::size_t factor = 0; factor < scopes.count(); ++factor) {
    if (scopes[factor].empty()) throw nb::value_error("a factor has variables");
    cells += double(cells_of(scopes[factor], states));
  }
  if (cells != double(values.size())) throw nb::value_error("each cell of a factor has one value");
  return unlocked([&] { return std::make_shared<RankedFactors>(std::move(states), scopes, span_of(values)); });
}

// Calls `work` without the interpreter's lock, with a time limit in seconds.
template <class Work>
auto limited(double seconds, const Work& work) {
  return unlocked([&] {
    const TimeLimit limit(seconds);
    check_stop();
    return work();
  });
}

nb::tuple arrays_of(const RootedCliques& cliques) {
  return nb::make_tuple(array_of(cliques.scopes.starts), array_of(cliques.scopes.members), array_of(cliques.parents));
}

Array<int, 2> pairs_of(const std::vector<LinkedTree::Member>& members) {
  std::vector<int> items;
  for (const auto& [number, clique] : members) items.insert(items.end(), {number, clique});
  return array_of(std::move(items), std::array<std::size_t, 2>{members.size(), 2});
}

const LinkedTree& tree_of(const LinkedTrees& trees, std::size_t number) {
  if (number >= trees.trees().size()) throw nb::index_error("there is no such tree");
  return trees.trees()[number];
}

}  // namespace

void bind_linked_trees(nb::module_& m) {
  m.def(
      "frugal_order",
      [](const plan::PlannedTree& tree) { return array_of(unlocked([&] { return frugal_order(tree); })); }, "tree"_a,
      "Return an elimination order with the same buckets that finishes one subtree before it begins the "
      "next, the one with the largest memory first.");
  nb::exception<ZeroSum>(m, "ZeroSumError");
  nb::exception<TreesTooLarge>(m, "TreesTooLargeError");
  nb::class_<RankedFactors>(m, "RankedFactors", "Factors over variables that are numbered in elimination order.")
      .def(nb::new_(&make_factors), "sizes"_a, "starts"_a, "members"_a, "values"_a,
           "Take factors: their scopes, slow to fast, and their values, one factor after another.");
  nb::class_<Forecasts>(m, "Forecasts", "Weights that later factors give to the states of variables.");
  nb::class_<LinkedTrees>(
      m, "LinkedTrees",
      "A sequence of clique trees, linked by approximate distributions. Calls raise `Stopped` after "
      "`seconds`, and `ZeroSumError` if the sum is 0, or too small for floats.")
      .def(nb::new_([](std::shared_ptr<RankedFactors> factors, i64 most_cells, double most_bytes,
                       std::shared_ptr<Forecasts> forecasts) {
             return std::make_shared<LinkedTrees>(std::move(factors), most_cells, most_bytes, std::move(forecasts));
           }),
           "factors"_a, "most_cells"_a, "most_bytes"_a, "forecasts"_a.none(),
           "Make an empty sequence. `most_cells`: largest number of cells of a clique, unless a factor is "
           "larger; `forecasts`: weights from other trees for the approximations; None: earlier factors alone.")
      .def(
          "build", [](LinkedTrees& trees, double seconds) { limited(seconds, [&] { trees.build(); }); }, "seconds"_a,
          "Make all trees; raise `TreesTooLargeError` if they do not fit the memory.")
      .def(
          "pass_backward",
          [](LinkedTrees& trees, double seconds) {
            return array_of(limited(seconds, [&] { return trees.pass_backward(); }));
          },
          "seconds"_a, "Update messages from later to earlier trees; return the marginals, one rank after another.")
      .def(
          "pass_forward", [](LinkedTrees& trees, double seconds) { limited(seconds, [&] { trees.pass_forward(); }); },
          "seconds"_a, "Update messages from earlier to later trees.")
      .def(
          "forecast",
          [](const LinkedTrees& trees, double seconds) {
            return limited(seconds, [&] { return std::const_pointer_cast<Forecasts>(trees.forecast()); });
          },
          "seconds"_a,
          "Return weights of states from later factors, for the approximations in another sequence of trees.")
      .def_prop_ro("log_z", &LinkedTrees::log_z, "Natural logarithm of the sum, from the last pass.")
      .def_prop_ro("divergence", &LinkedTrees::divergence,
                   "Total mutual information that approximations removed, in nats.")
      .def_prop_ro("bytes", &LinkedTrees::bytes, "Bytes of all trees and interfaces.")
      .def_prop_ro("is_exact", &LinkedTrees::is_exact, "True if nothing was approximated.")
      .def("__len__", [](const LinkedTrees& trees) { return trees.trees().size(); })
      .def(
          "cliques",
          [](const LinkedTrees& trees, std::size_t number) { return arrays_of(tree_of(trees, number).cliques); },
          "tree"_a, "Return the scopes of a tree's cliques, as starts and members, and their parents.")
      .def(
          "members",
          [](const LinkedTrees& trees, std::size_t number) {
            const LinkedTree& tree = tree_of(trees, number);
            return nb::make_tuple(pairs_of(tree.factors), pairs_of(tree.eliminated));
          },
          "tree"_a, "Return a tree's factors and the variables that it eliminates, each with its clique.")
      .def(
          "interface",
          [](const LinkedTrees& trees, std::size_t number) -> nb::object {
            const Interface* const interface = tree_of(trees, number).output.get();
            if (!interface) return nb::none();
            return nb::make_tuple(arrays_of(interface->cliques), array_of(interface->forward));
          },
          "tree"_a,
          "Return the cliques of the distribution that a tree passes to the next one, and its factors, one "
          "after another; None for the last tree.");
}

}  // namespace elimina::approx
