#include "approx/join_graph.hpp"
#include "approx/message_sweeps.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>

#include "argument_checks.hpp"
#include "arrays.hpp"
#include "module.hpp"
#include "propagation_run.hpp"
#include "scope_lists.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::approx {
namespace {

void make_join_graph(JoinGraph* self, Words<const std::int64_t> sizes, Words<const std::int64_t> starts,
                     Words<const std::int32_t> members, Words<const std::int32_t> ends,
                     Words<const std::int64_t> separator_starts, Words<const std::int32_t> separator_members) {
  check_sizes(span_of(sizes));
  ScopeList scopes = scope_list_of(starts, members, sizes.size());
  ScopeList separators = scope_list_of(separator_starts, separator_members, sizes.size());
  if (ends.size() != 2 * separators.count()) throw nb::value_error("an edge has two ends and a separator");
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends(i) < 0 || static_cast<std::size_t>(ends(i)) >= scopes.count())
      throw nb::index_error("there is no such cluster");
    const std::span scope = scopes[ends(i)];
    for (const std::int32_t v : separators[i / 2])
      if (std::ranges::find(scope, v) == scope.end()) throw nb::value_error("a separator is part of both clusters");
  }
  nb::gil_scoped_release release;
  new (self) JoinGraph(list_of(sizes), std::move(scopes), span_of(ends), separators);
}

void make_message_sweeps(MessageSweeps* self, Words<const std::int64_t> sizes, Words<const std::int64_t> starts,
                         Words<const std::int32_t> members, Words<const double> values) {
  check_sizes(span_of(sizes));
  ScopeList scopes = scope_list_of(starts, members, sizes.size());
  const std::vector<std::int64_t> counts = list_of(sizes);
  double cells = 0;
  for (std::size_t factor = 0; factor < scopes.count(); ++factor) {
    double product = 1;
    for (const std::int32_t v : scopes[factor]) product *= double(counts[v]);
    cells += product;
  }
  if (cells != double(values.size())) throw nb::value_error("each cell of a factor has one value");
  nb::gil_scoped_release release;
  new (self) MessageSweeps(counts, std::move(scopes), list_of(values));
}

}  // namespace

void bind_approx(nb::module_& m) {
  nb::class_<JoinGraph>(m, "JoinGraph", "Propagation of sums on a join graph.")
      .def("__init__", &make_join_graph, "sizes"_a, "starts"_a, "members"_a, "ends"_a, "separator_starts"_a,
           "separator_members"_a)
      .def(
          "multiply",
          [](JoinGraph& graph, Words<const std::int64_t> clusters, Words<const std::int64_t> starts,
             Words<const std::int32_t> members, Words<const double> values) {
            const ScopeList scopes{list_of(starts), list_of(members)};
            if (!unlocked([&] { return graph.multiply(span_of(clusters), scopes, span_of(values)); }))
              throw nb::value_error("a factor does not fit its cluster");
          },
          "clusters"_a, "starts"_a, "members"_a, "values"_a,
          "Multiply clusters' tables by factors over some of their variables, slow to fast.")
      .def("run", &run_propagation<JoinGraph>, "tolerance"_a, "damping"_a, "updates"_a, "seconds"_a,
           "Update clusters until no message changes by more than the tolerance, or `updates` times; return "
           "whether all have converged.")
      .def(
          "log_sum", [](JoinGraph& graph) { return unlocked([&] { return graph.log_sum(); }); },
          "Return Bethe's approximation of the sum's natural logarithm.")
      .def(
          "marginals",
          [](JoinGraph& graph, Words<const std::int32_t> variables) {
            return array_of(unlocked([&] { return graph.marginals(span_of(variables)); }));
          },
          "variables"_a, "Return the marginals of these variables, one after another.")
      .def(
          "messages",
          [](const JoinGraph& graph, std::size_t edges) {
            return array_of(unlocked([&] { return graph.messages(edges); }));
          },
          "edges"_a,
          "Return the messages of the first `edges` edges, each from the first end to the second, one after "
          "another.")
      .def_prop_ro("residual", &JoinGraph::residual, "Largest change of a message that waits for its reader.")
      .def_prop_ro("is_impossible", &JoinGraph::is_impossible,
                   "True if the messages show that no assignment is possible.");

  nb::class_<MessageSweeps>(m, "MessageSweeps", "Loopy belief propagation by sweeps over factors.")
      .def("__init__", &make_message_sweeps, "sizes"_a, "starts"_a, "members"_a, "values"_a)
      .def("run", &run_propagation<MessageSweeps>, "tolerance"_a, "damping"_a, "sweeps"_a, "seconds"_a,
           "Sweep until no message changes by more than the tolerance, or `sweeps` times; return whether all have "
           "converged.")
      .def(
          "log_sum", [](MessageSweeps& messages) { return unlocked([&] { return messages.log_sum(); }); },
          "Return Bethe's approximation of the sum's natural logarithm.")
      .def(
          "marginals",
          [](const MessageSweeps& messages) {
            return array_of(unlocked([&] { return MessageSweeps::Cells(messages.marginals()); }));
          },
          "Return the marginals of all variables, one after another.")
      .def_prop_ro("variables", &MessageSweeps::variables, "Number of variables.")
      .def_prop_ro("residual", &MessageSweeps::residual, "Largest change of a message in the last sweep.")
      .def_prop_ro("is_impossible", &MessageSweeps::is_impossible,
                   "True if the messages show that no assignment is possible.");
}

}  // namespace elimina::approx
