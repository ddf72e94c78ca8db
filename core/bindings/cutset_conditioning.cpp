#include "approx/cutset_conditioning.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>

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

void make_conditioning(CutsetConditioning* self, Words<const std::int64_t> sizes, Words<const std::int64_t> starts,
                       Words<const std::int32_t> members, Words<const double> values, Words<const std::int32_t> order) {
  check_sizes(span_of(sizes));
  if (std::ranges::any_of(span_of(values), [](double value) { return !(value >= 0 && value <= 1); }))
    throw nb::value_error("values are from 0 to 1");
  const ScopeList scopes = scope_list_of(starts, members, sizes.size());
  std::int64_t cells = 0;
  for (std::size_t number = 0; number < scopes.count(); ++number) cells += cells_of(scopes[number], span_of(sizes));
  if (cells != std::int64_t(values.size())) throw nb::value_error("each cell of a factor has one value");
  std::vector<std::int32_t> sorted = list_of(order);
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end() ||
      (!sorted.empty() && (sorted.front() < 0 || std::size_t(sorted.back()) >= sizes.size())))
    throw nb::value_error("an order has each variable once at most");
  new (self) CutsetConditioning(list_of(sizes), scopes, list_of(values), list_of(order));
}

}  // namespace

void bind_cutset_conditioning(nb::module_& m) {
  nb::class_<CutsetConditioning>(m, "CutsetConditioning", "Sums and marginals by conditioning on a few variables.")
      .def("__init__", &make_conditioning, "sizes"_a, "starts"_a, "members"_a, "values"_a, "order"_a,
           "Condition on the variables that the order leaves out.")
      .def(
          "run",
          [](CutsetConditioning& conditioning, double seconds) {
            return unlocked([&] {
              const TimeLimit limit(seconds);
              return conditioning.run();
            });
          },
          "seconds"_a, "Add up slices until all are done or time is up; return whether all are.")
      .def_prop_ro("progress", &CutsetConditioning::progress, "Share of the slices that are done.")
      .def_prop_ro("cells", &CutsetConditioning::cells, "Number of cells of all tables.")
      .def_prop_ro("log_sum", &CutsetConditioning::log_sum, "Natural logarithm of the sum of the slices so far.")
      .def_prop_ro("is_accurate", &CutsetConditioning::is_accurate,
                   "False if numbers below the range of floats may have mattered.")
      .def(
          "marginals", [](const CutsetConditioning& conditioning) { return array_of(conditioning.marginals()); },
          "Marginals of all variables by the slices so far, one after another.");
}

}  // namespace elimina::approx
