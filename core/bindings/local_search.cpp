#include "network/local_search.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <utility>

#include "arrays.hpp"
#include "costs.hpp"
#include "module.hpp"
#include "stop.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::network {
namespace {

constexpr double kTurn = 1 << 21;  // cells that either kind of move visits before the other's turn: a few ms

// A local search, and the costs that it reads.
class Improver {
 public:
  Improver(std::vector<int> sizes, const Words<const std::int64_t>& starts, const Words<const Var>& members, Words<const double> costs,
           std::uint64_t seed)
      : costs_(std::move(costs)), search_(view_of(std::move(sizes), {starts, members}), seed) {}

  void start(const std::vector<int>& value) {
    if (value.size() != static_cast<std::size_t>(search_.count())) throw nb::value_error("there are other variables than values");
    for (Var v = 0; v < search_.count(); ++v)
      if (value[v] < 0 || value[v] >= sizes_[v]) throw nb::index_error("there is no such value");
    const nb::gil_scoped_release release;
    search_.start(value);
  }

  bool run(double seconds, double cells) {
    if (std::isnan(seconds) || !(cells >= 0)) throw nb::value_error("the limits are numbers, cells at least 0");
    const nb::gil_scoped_release release;
    const elimina::TimeLimit limit(seconds);
    bool is_better = false;
    const auto turn = static_cast<std::uint64_t>(std::clamp(cells / 2, 1.0, kTurn));
    for (double spent = 0; spent < cells && !elimina::stopped(); spent += 2.0 * double(turn)) {
      is_better |= search_.explore(turn);
      is_better |= search_.run(turn);
    }
    return is_better;
  }

  const std::vector<int>& best() const { return search_.best(); }

 private:
  View view_of(std::vector<int> sizes, const Scopes& scopes) {
    for (const int size : sizes)
      if (size < 1) throw nb::value_error("each variable has a value");
    const auto cells = checked_cells(sizes, scopes, costs_.size());
    View view{{Type::float64, infinite}, sizes, {}};
    for (std::size_t f = 0; f < scopes.count(); ++f) {
      view.functions.push_back({costs_.data() + cells[f], {}});
      std::int64_t stride = 1;
      const auto scope = scopes[f];
      for (std::size_t axis = scope.size(); axis-- > 0;) {
        view.functions.back().axes.push_back({scope[axis], stride});
        stride *= sizes[scope[axis]];
      }
    }
    sizes_ = std::move(sizes);
    return view;
  }

  Words<const double> costs_;
  std::vector<int> sizes_;
  LocalSearch search_;
};

}  // namespace

void bind_local_search(nb::module_& m) {
  nb::class_<Improver>(m, "LocalSearch",
                       "Local search for a small sum of costs (infinite: forbidden): tabu moves, and neighbourhoods solved by elimination, in turns.")
      .def(nb::init<std::vector<int>, const Words<const std::int64_t>&, const Words<const Var>&, Words<const double>, std::uint64_t>(), "sizes"_a,
           "starts"_a, "members"_a, "costs"_a, "seed"_a)
      .def("start", &Improver::start, "value"_a, "Go on from an assignment, which may be forbidden.")
      .def("run", &Improver::run, "seconds"_a, "cells"_a,
           "Search until so many cells were visited, and return whether a better assignment was found. Runs that no time limit ends are reproducible.")
      .def_prop_ro("best", &Improver::best, "The best assignment since the start.");
}

}  // namespace elimina::network
