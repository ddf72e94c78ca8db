#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>

#include "approx/region_graph.hpp"
#include "approx/region_propagation.hpp"
#include "argument_checks.hpp"
#include "arrays.hpp"
#include "module.hpp"
#include "propagation_run.hpp"
#include "scope_lists.hpp"
#include "stop.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::approx {
namespace {

ScopeList sorted_scopes(const Words<const std::int64_t>& starts, const Words<const std::int32_t>& members,
                        std::size_t variables) {
  ScopeList scopes = scope_list_of(starts, members, variables);
  for (std::size_t number = 0; number < scopes.count(); ++number)
    std::sort(scopes.members.begin() + scopes.starts[number], scopes.members.begin() + scopes.starts[number + 1]);
  return scopes;
}

nb::tuple arrays_of(ScopeList scopes) {
  return nb::make_tuple(array_of(std::move(scopes.starts)), array_of(std::move(scopes.members)));
}

void make_region_graph(RegionGraph* self, Words<const std::int64_t> sizes, Words<const std::int64_t> starts,
                       Words<const std::int32_t> members, std::size_t largest, std::int64_t max_members,
                       double seconds) {
  check_sizes(span_of(sizes));
  const ScopeList clusters = sorted_scopes(starts, members, sizes.size());
  unlocked([&] {
    const TimeLimit limit(seconds);
    new (self) RegionGraph(list_of(sizes), clusters, largest, max_members);
  });
}

}  // namespace

void bind_regions(nb::module_& m) {
  m.def(
      "short_loops",
      [](std::size_t variables, Words<const std::int64_t> starts, Words<const std::int32_t> members,
         std::size_t max_loops, double seconds) {
        const ScopeList scopes = sorted_scopes(starts, members, variables);
        return arrays_of(unlocked([&] {
          const TimeLimit limit(seconds);
          return short_loops(variables, scopes, max_loops);
        }));
      },
      "variables"_a, "starts"_a, "members"_a, "max_loops"_a, "seconds"_a,
      "Return the variables of chordless loops of three or four variables in the graph of scopes, unless "
      "one scope contains the loop; at most `max_loops` loops.");
  nb::class_<RegionGraph>(m, "RegionGraph", "Regions of the cluster variation method.")
      .def("__init__", &make_region_graph, "sizes"_a, "starts"_a, "members"_a, "largest"_a, "max_members"_a,
           "seconds"_a, "Intersect clusters, in inner regions of at most `largest` variables.")
      .def(
          "grow",
          [](const RegionGraph& graph, double max_cells, double seconds) {
            return arrays_of(unlocked([&] {
              const TimeLimit limit(seconds);
              return graph.grow(max_cells);
            }));
          },
          "max_cells"_a, "seconds"_a,
          "Return larger clusters: unions of the outer regions around each inner region with at most "
          "`max_cells` cells, and the outer regions.")
      .def_prop_ro(
          "outer", [](const RegionGraph& graph) { return arrays_of(graph.outer()); }, "Scopes of outer regions.")
      .def_prop_ro(
          "inner", [](const RegionGraph& graph) { return arrays_of(graph.inner()); }, "Scopes of inner regions.")
      .def_prop_ro(
          "parents", [](const RegionGraph& graph) { return arrays_of(graph.parents()); },
          "Outer regions that receive messages from each inner region.")
      .def_prop_ro(
          "counting_numbers", [](const RegionGraph& graph) { return array_of(graph.counting_numbers()); },
          nb::rv_policy::reference, "Counting numbers of inner regions.")
      .def_prop_ro("is_complete", &RegionGraph::is_complete, "False if there are too many regions, or the time was up.")
      .def_prop_ro("outer_cells", &RegionGraph::outer_cells, "Cells of outer regions.")
      .def_prop_ro("message_cells", &RegionGraph::message_cells, "Cells of messages.");
  nb::class_<RegionPropagation>(m, "RegionPropagation", "Generalised belief propagation.")
      .def(
          "__init__",
          [](RegionPropagation* self, const RegionGraph& graph, Words<const std::int64_t> starts,
             Words<const std::int32_t> members, Words<const double> values) {
            if (!graph.is_complete()) throw nb::value_error("the region graph is complete");
            const ScopeList scopes = scope_list_of(starts, members, graph.sizes().size());
            if (std::ranges::any_of(span_of(values), [](double value) { return !(value >= 0); }))
              throw nb::value_error("values are at least 0");
            new (self) RegionPropagation(graph);
            if (!self->multiply(graph, scopes, span_of(values))) {
              self->~RegionPropagation();
              throw nb::value_error("a factor does not fit its region");
            }
          },
          "graph"_a, "starts"_a, "members"_a, "values"_a,
          "Multiply factors, slow to fast, into the tables of outer regions.")
      .def(
          "filter_tuples",
          [](RegionPropagation& propagation, double seconds) {
            return unlocked([&] {
              const TimeLimit limit(seconds);
              return propagation.filter_tuples();
            });
          },
          "seconds"_a, "Remove tuples that other regions forbid; return False if a region has none left.")
      .def("run", &run_propagation<RegionPropagation>, "tolerance"_a, "damping"_a, "sweeps"_a, "seconds"_a,
           "Pass messages until regions agree within the tolerance, or for `sweeps` sweeps; return whether "
           "they agree.")
      .def(
          "run_double_loop",
          [](RegionPropagation& propagation, double tolerance, double precision, std::uint64_t inner_sweeps,
             std::uint64_t sweeps, double seconds) {
            return unlocked([&] {
              const TimeLimit limit(seconds);
              return propagation.run_double_loop(tolerance, precision, inner_sweeps, sweeps);
            });
          },
          "tolerance"_a, "precision"_a, "inner_sweeps"_a, "sweeps"_a, "seconds"_a,
          "Minimise the free energy by the double loop; return whether regions agree.")
      .def(
          "log_sum", [](RegionPropagation& propagation) { return unlocked([&] { return propagation.log_sum(); }); },
          "Return Kikuchi's approximation of the sum's natural logarithm.")
      .def(
          "marginals",
          [](RegionPropagation& propagation, Words<const std::int32_t> variables) {
            return array_of(unlocked([&] { return propagation.marginals(span_of(variables)); }));
          },
          "variables"_a, "Return the marginals of these variables, one after another.")
      .def_prop_ro("residual", &RegionPropagation::residual, "Largest difference of probabilities between regions.")
      .def_prop_ro("sweeps", &RegionPropagation::sweeps, "Number of sweeps so far.");
}

}  // namespace elimina::approx
