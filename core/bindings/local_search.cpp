#include "network/local_search.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "argument_checks.hpp"
#include "arrays.hpp"
#include "costs.hpp"
#include "exec/run_threads.hpp"
#include "module.hpp"
#include "stop.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::network {
namespace {

constexpr double kTurn = 1 << 21;  // cells that one kind of move visits before the other kind begins: a few ms

// Local searches, one for each thread, and the costs that they read.
class Improver {
 public:
  Improver(std::vector<int> sizes, const Words<const std::int64_t>& starts, const Words<const Var>& members,
           Words<const double> costs, std::uint64_t seed, int threads)
      : costs_(std::move(costs)) {
    if (threads < 1) throw nb::value_error("a search takes a thread");
    searches_.emplace_back(view_of(std::move(sizes), {starts, members}), seed);
    for (int i = 1; i < threads; ++i) {
      searches_.push_back(searches_.front());
      searches_.back().reseed(seed + static_cast<std::uint64_t>(i));
    }
  }

  void start(const std::vector<int>& value) {
    if (value.size() != sizes_.size()) throw nb::value_error("there are other variables than values");
    for (std::size_t v = 0; v < value.size(); ++v)
      if (value[v] < 0 || value[v] >= sizes_[v]) throw nb::index_error("there is no such value");
    const nb::gil_scoped_release release;
    for (LocalSearch& search : searches_) search.start(value);
    best_ = 0;
  }

  bool run(double seconds, double cells) {
    if (std::isnan(seconds) || !(cells >= 0)) throw nb::value_error("the limits are numbers, cells at least 0");
    const nb::gil_scoped_release release;
    const elimina::TimeLimit limit(seconds);
    if (searches_.size() == 1) return turns(searches_.front(), cells);
    const double before = searches_[best_].cost();
    const auto end = elimina::patience.end;
    elimina::Stop stop;
    elimina::run_threads(
        static_cast<int>(searches_.size()),
        [&](int number) {
          elimina::patience = {&stop, end};
          turns(searches_[static_cast<std::size_t>(number)], cells);
        },
        [] {}, [&] { stop.request(); });
    best_ = std::min_element(searches_.begin(), searches_.end(),
                             [](const auto& a, const auto& b) { return a.cost() < b.cost(); }) -
            searches_.begin();
    if (!(searches_[best_].cost() < before)) return false;
    for (LocalSearch& search : searches_)
      if (search.cost() > searches_[best_].cost()) search.start(searches_[best_].best());
    return true;
  }

  const std::vector<int>& best() const { return searches_[best_].best(); }

 private:
  static bool turns(LocalSearch& search, double cells) {
    bool is_better = false;
    const auto visits = static_cast<std::uint64_t>(std::clamp(cells / 2, 1.0, kTurn));
    for (double spent = 0; spent < cells && !elimina::stopped(); spent += 2.0 * double(visits)) {
      is_better |= search.explore(visits);
      is_better |= search.run(visits);
    }
    return is_better;
  }

  View view_of(std::vector<int> sizes, const Scopes& scopes) {
    check_sizes(sizes);
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
  std::vector<LocalSearch> searches_;
  std::size_t best_ = 0;  // thread with the best solution
};

}  // namespace

void bind_local_search(nb::module_& m) {
  nb::class_<Improver>(
      m, "LocalSearch",
      "Local search for a small sum of costs (infinite: forbidden): tabu moves, and neighbourhoods solved "
      "by elimination, in turns. Each thread searches by itself; if a run finds a better assignment, all "
      "threads continue from the best one.")
      .def(nb::init<std::vector<int>, const Words<const std::int64_t>&, const Words<const Var>&, Words<const double>,
                    std::uint64_t, int>(),
           "sizes"_a, "starts"_a, "members"_a, "costs"_a, "seed"_a, "threads"_a)
      .def("start", &Improver::start, "value"_a, "Begin at an assignment, which may be forbidden.")
      .def("run", &Improver::run, "seconds"_a, "cells"_a,
           "Search until each thread has visited `cells` cells, or the time is up; return whether a better "
           "assignment was found. Runs that no time limit ends are reproducible.")
      .def_prop_ro("best", &Improver::best, "Best assignment since the start.");
}

}  // namespace elimina::network
