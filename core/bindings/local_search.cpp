#include "network/local_search.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <utility>

#include "arrays.hpp"
#include "module.hpp"
#include "stop.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::network {
namespace {

using Costs = Words<const double>;

constexpr double kTurn = 1 << 21;  // cells that either kind of move visits before the other's turn: a few ms

// A local search, and the tables that it reads.
class Improver {
 public:
  Improver(std::vector<int> sizes, const std::vector<std::vector<Var>>& scopes, std::vector<Costs> tables, std::uint64_t seed)
      : tables_(std::move(tables)), search_(view_of(std::move(sizes), scopes), seed) {}

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
  View view_of(std::vector<int> sizes, const std::vector<std::vector<Var>>& scopes) {
    if (scopes.size() != tables_.size()) throw nb::value_error("as many scopes as tables are needed");
    for (const int size : sizes)
      if (size < 1) throw nb::value_error("each variable has a value");
    View view{{Type::float64, infinite}, sizes, {}};
    for (std::size_t i = 0; i < scopes.size(); ++i) {
      view.functions.push_back({tables_[i].data(), {}});
      std::int64_t stride = 1;
      for (std::size_t axis = scopes[i].size(); axis-- > 0;) {
        const Var v = scopes[i][axis];
        if (v < 0 || v >= static_cast<Var>(sizes.size())) throw nb::index_error("a scope names no variable");
        view.functions.back().axes.push_back({v, stride});
        stride *= sizes[v];
      }
      if (static_cast<std::size_t>(stride) != tables_[i].size()) throw nb::value_error("a table has other cells than its scope");
    }
    sizes_ = std::move(sizes);
    return view;
  }

  std::vector<Costs> tables_;
  std::vector<int> sizes_;
  LocalSearch search_;
};

}  // namespace

void bind_local_search(nb::module_& m) {
  nb::class_<Improver>(m, "LocalSearch",
                       "Local search for a small sum of costs (infinite: forbidden): tabu moves, and neighbourhoods solved by elimination, in turns.")
      .def(nb::init<std::vector<int>, const std::vector<std::vector<Var>>&, std::vector<Costs>, std::uint64_t>(), "sizes"_a, "scopes"_a,
           "tables"_a, "seed"_a)
      .def("start", &Improver::start, "value"_a, "Go on from an assignment, which may be forbidden.")
      .def("run", &Improver::run, "seconds"_a, "cells"_a,
           "Search until so many cells were visited, and return whether a better assignment was found. Runs that no time limit ends are reproducible.")
      .def_prop_ro("best", &Improver::best, "The best assignment since the start.");
}

}  // namespace elimina::network
