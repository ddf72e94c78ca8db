#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>

#include "interruptible.hpp"
#include "module.hpp"
#include "tsp/root_bound.hpp"
#include "tsp/tour_search.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::tsp {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

using Matrix = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Distances distances_of(const Matrix& matrix) {
  if (matrix.shape(0) != matrix.shape(1) || matrix.shape(0) < 3 || matrix.shape(0) > 1U << 20)
    throw nb::value_error("distances are a square matrix of three cities at least");
  return {matrix.data(), static_cast<int>(matrix.shape(0))};
}

// Runs `compute` without the interpreter's lock, until it ends, the time is over, or a signal arrives.
void limited(double seconds, elimina::Call<void()> compute) {
  elimina::Stop stop;
  run_interruptibly(
      [&] {
        elimina::patience.stop = &stop;
        const elimina::TimeLimit limit(seconds);
        compute();
      },
      [&] { stop.request(); });
}

template <class T, class... Arguments>
void construct(T* self, double seconds, const Arguments&... arguments) {
  bool is_made = false;
  try {
    limited(seconds, [&] {
      new (self) T(arguments...);
      is_made = true;
    });
  } catch (const nb::python_error&) {
    if (is_made) self->~T();
    throw;
  }
}

void make_search(TourSearch* self, const Matrix& matrix, std::uint64_t seed, double seconds) {
  const Distances distances = distances_of(matrix);
  construct<TourSearch>(self, seconds, distances, seed);
}

void start(TourSearch& self, const std::vector<int>& tour) {
  std::vector<int> sorted = tour;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int>(i)) throw nb::value_error("a tour has each city once");
  if (sorted.size() != self.tour().size()) throw nb::value_error("a tour has each city once");
  limited(kNoLimit, [&] { self.start(tour); });
}

void make_bound(RootBound* self, const Matrix& matrix, const std::vector<int>& from, const std::vector<int>& to,
                double seconds) {
  const Distances distances = distances_of(matrix);
  if (from.size() != to.size()) throw nb::value_error("an edge has two ends");
  for (std::size_t k = 0; k < from.size(); ++k)
    if (std::min(from[k], to[k]) < 0 || std::max(from[k], to[k]) >= distances.cities || from[k] == to[k])
      throw nb::index_error("an edge is between two cities");
  construct<RootBound>(self, seconds, distances, from, to);
}

struct Edges {
  std::vector<int> from, to;
  std::vector<Length> lengths;
};

struct Multipliers {
  std::vector<Length> parts;
  Length parts_of_unit;
};

std::optional<Edges> survivors(const RootBound& self, Length upper, std::size_t max_edges, double seconds) {
  std::optional<Graph> graph;
  limited(seconds, [&] { graph = self.survivors(upper, max_edges); });
  if (!graph) return std::nullopt;
  return Edges{std::move(graph->from), std::move(graph->to), std::move(graph->length)};
}

}  // namespace

void bind_tsp(nb::module_& m) {
  nb::class_<Edges>(m, "TourEdges", "Edges that short tours may have.")
      .def_ro("ends", &Edges::from, "One city of each edge.")
      .def_ro("other_ends", &Edges::to, "The other city of each edge.")
      .def_ro("lengths", &Edges::lengths, "Lengths of the edges.");
  nb::class_<Multipliers>(m, "TourMultipliers", "Lagrange multipliers of the cities.")
      .def_ro("parts", &Multipliers::parts, "Multiplier of each city, in parts of a unit of length.")
      .def_ro("parts_of_unit", &Multipliers::parts_of_unit, "Number of parts of a unit of length.");
  nb::class_<TourSearch>(m, "TourSearch",
                         "An iterated local search for a short tour; distances are symmetric. After `seconds`, or on a "
                         "signal, calls end early.")
      .def("__init__", &make_search, "distances"_a, "seed"_a, "seconds"_a = kNoLimit, nb::keep_alive<1, 2>())
      .def(
          "kick",
          [](TourSearch& self, std::uint64_t count, double seconds) { limited(seconds, [&] { self.kick(count); }); },
          "count"_a, "seconds"_a = kNoLimit,
          "Make double bridges, each of which is repaired by local search, and undone if the tour is longer "
          "than before.")
      .def("start", &start, "tour"_a, "Continue from another tour.")
      .def_prop_ro("length", &TourSearch::length)
      .def_prop_ro("tour", &TourSearch::tour)
      .def_prop_ro("edges", &TourSearch::edges, "Both ends of the tour's edges, then of edges between neighbours.");
  nb::class_<RootBound>(m, "RootBound",
                        "A lower bound on all tours, and the edges that short tours may have. After `seconds`, or on a "
                        "signal, calls end early.")
      .def("__init__", &make_bound, "distances"_a, "from_"_a, "to"_a, "seconds"_a = kNoLimit, nb::keep_alive<1, 2>())
      .def(
          "improve",
          [](RootBound& self, Length upper, int steps, double seconds) {
            bool is_better = false;
            limited(seconds, [&] { is_better = self.improve(upper, steps); });
            return is_better;
          },
          "upper"_a, "steps"_a, "seconds"_a = kNoLimit,
          "Take `steps` steps; return False if neither the bound nor the edges changed.")
      .def_prop_ro("bound", &RootBound::bound)
      .def_prop_ro("edges", &RootBound::edges)
      .def_prop_ro(
          "multipliers", [](const RootBound& self) { return Multipliers{self.multipliers(), self.scale()}; },
          "Multipliers of the cities.")
      .def("survivors", &survivors, "upper"_a, "max_edges"_a, "seconds"_a = kNoLimit,
           "Return both ends and the lengths of all edges that a tour of at most `upper` may have; None if "
           "there are more than `max_edges`, or the time was up.");
}

}  // namespace elimina::tsp
