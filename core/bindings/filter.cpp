#include "filter/filter.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "arrays.hpp"
#include "costs.hpp"
#include "listener.hpp"
#include "module.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::filter {
namespace {

void check_assignment(const Network& network, const std::vector<int>& value) {
  if (!value.empty() && value.size() != network.size.size())
    throw nb::value_error("there are other variables than values");
  for (std::size_t v = 0; v < value.size(); ++v)
    if (value[v] < 0 || value[v] >= network.size[v]) throw nb::index_error("there is no such value");
}

nb::dict minimise_costs(std::vector<int> sizes, Words<const std::int64_t> starts, Words<const Var> members,
                        const Costs& costs, Cost upper, double seconds, std::size_t most_rows, std::uint64_t seed,
                        nb::object poll, std::size_t count, std::vector<int> start) {
  if (count < 1) throw nb::value_error("at least one solution is searched for");
  const Network network = network_of(std::move(sizes), {starts, members}, costs, 0, upper);
  check_assignment(network, start);
  Ended ended;
  const Report report = unlocked(
      [&] { return minimise(network, {seconds, most_rows, seed, listener_of(poll, ended), count, std::move(start)}); });
  if (ended.raised) throw nb::python_error();
  nb::dict result;
  result["interrupted"] = ended.interrupted;
  nb::list solutions;
  for (const Solution& solution : report.solutions) solutions.append(nb::make_tuple(solution.cost, solution.value));
  result["solutions"] = solutions;
  result["bound"] = report.bound;
  result["made"] = report.made;
  result["kept"] = report.kept;
  result["slices"] = report.slices;
  result["eliminations"] = report.eliminations;
  result["largest"] = report.largest;
  result["bytes"] = report.bytes;
  nb::dict clock;
  clock["shift"] = report.shifting;
  clock["climb"] = report.climbing;
  clock["bound"] = report.bounding;
  clock["run"] = report.eliminating;
  result["seconds"] = clock;
  return result;
}

NetworkArrays shift_costs(std::vector<int> sizes, Words<const std::int64_t> starts, Words<const Var> members,
                          const Costs& costs, Cost constant, Cost upper, double seconds, Cost least_gain,
                          nb::object poll) {
  const Network network = network_of(std::move(sizes), {starts, members}, costs, constant, upper);
  Ended ended;
  Network shifted = unlocked([&] { return shift(network, seconds, least_gain, listener_of(poll, ended)); });
  if (elimina::stopped()) throw elimina::Stopped{};
  if (ended.interrupted) PyErr_SetNone(PyExc_KeyboardInterrupt);
  if (ended.raised || ended.interrupted) throw nb::python_error();
  return arrays_of(shifted);
}

}  // namespace

void bind_filter(nb::module_& m) {
  nb::class_<NetworkArrays>(m, "CostArrays", "Cost functions, those of one scope after another.")
      .def_ro("sizes", &NetworkArrays::sizes, "Domain sizes of the variables.")
      .def_ro("constant", &NetworkArrays::constant, "Constant cost.")
      .def_ro("starts", &NetworkArrays::starts, nb::rv_policy::reference, "Starts of the scopes.")
      .def_ro("members", &NetworkArrays::members, nb::rv_policy::reference, "Variables of the scopes.")
      .def_ro("costs", &NetworkArrays::costs, nb::rv_policy::reference, "Costs of all cells.");
  m.attr("FORBIDDEN_COST") = forbidden;
  m.def("minimise_costs", &minimise_costs, "sizes"_a, "starts"_a, "members"_a, "costs"_a, "upper"_a, "seconds"_a,
        "most_rows"_a, "seed"_a, "poll"_a, "count"_a = 1, "start"_a = std::vector<int>{},
        "Return the `count` least sums of costs below `upper` and their values, by elimination that drops rows by "
        "bounds. Costs are at least 0 and below 2^38 in total, or FORBIDDEN_COST. `poll` gets both bounds now and "
        "then, and the best value if it is new (else None), and ends the search by False; so does an interruption. "
        "`start`: the values of a known solution; empty: one is searched for.");
  m.def("shift_costs", &shift_costs, "sizes"_a, "starts"_a, "members"_a, "costs"_a, "constant"_a, "upper"_a,
        "seconds"_a, "least_gain"_a, "poll"_a,
        "Return an equivalent sum of costs (as in `minimise_costs`, but up to 2^48 in total): the constant is a "
        "lower bound; first come the functions of several variables in the given sequence, then one function for "
        "each variable. Assignments that cost at least `upper` are lost.");
}

}  // namespace elimina::filter
