#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>

#include "module.hpp"
#include "tsp/root_bound.hpp"
#include "tsp/tour_search.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace elimina::tsp;

namespace {

using Matrix = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Distances distances_of(const Matrix& matrix) {
  if (matrix.shape(0) != matrix.shape(1) || matrix.shape(0) < 3 || matrix.shape(0) > 1U << 20)
    throw nb::value_error("distances are a square matrix of three cities at least");
  return {matrix.data(), static_cast<int>(matrix.shape(0))};
}

void make_search(TourSearch* self, const Matrix& matrix, std::uint64_t seed) {
  const Distances distances = distances_of(matrix);
  nb::gil_scoped_release release;
  new (self) TourSearch(distances, seed);
}

void start(TourSearch& self, const std::vector<int>& tour) {
  std::vector<int> sorted = tour;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int>(i)) throw nb::value_error("a tour has each city once");
  if (sorted.size() != self.tour().size()) throw nb::value_error("a tour has each city once");
  nb::gil_scoped_release release;
  self.start(tour);
}

void make_bound(RootBound* self, const Matrix& matrix, const std::vector<int>& from, const std::vector<int>& to) {
  const Distances distances = distances_of(matrix);
  if (from.size() != to.size()) throw nb::value_error("an edge has two ends");
  for (std::size_t k = 0; k < from.size(); ++k)
    if (std::min(from[k], to[k]) < 0 || std::max(from[k], to[k]) >= distances.cities || from[k] == to[k])
      throw nb::index_error("an edge is between two cities");
  nb::gil_scoped_release release;
  new (self) RootBound(distances, from, to);
}

using Edges = std::tuple<std::vector<int>, std::vector<int>, std::vector<Length>>;

std::optional<Edges> survivors(const RootBound& self, Length upper, std::size_t most) {
  nb::gil_scoped_release release;
  auto graph = self.survivors(upper, most);
  if (!graph) return std::nullopt;
  return Edges{std::move(graph->from), std::move(graph->to), std::move(graph->length)};
}

}  // namespace

void bind_tsp(nb::module_& m) {
  nb::class_<TourSearch>(m, "TourSearch", "Iterated local search for a short tour; the distances are symmetric.")
      .def("__init__", &make_search, "distances"_a, "seed"_a, nb::keep_alive<1, 2>())
      .def("kick", &TourSearch::kick, "count"_a, nb::call_guard<nb::gil_scoped_release>(), "Tries so many changes of a few edges.")
      .def("start", &start, "tour"_a, "Goes on from another tour.")
      .def_prop_ro("length", &TourSearch::length)
      .def_prop_ro("tour", [](const TourSearch& self) { return self.tour(); })
      .def_prop_ro("neighbours", [](const TourSearch& self) { return std::tuple(self.neighbours(), self.neighbours_each()); },
                   "The nearest cities of each, from the nearest on, and how many they are.");
  nb::class_<RootBound>(m, "RootBound", "A lower bound on all tours, and the edges that good ones may have.")
      .def("__init__", &make_bound, "distances"_a, "from_"_a, "to"_a, nb::keep_alive<1, 2>())
      .def("improve", &RootBound::improve, "upper"_a, "steps"_a, nb::call_guard<nb::gil_scoped_release>(), "False: nothing changed.")
      .def_prop_ro("bound", &RootBound::bound)
      .def_prop_ro("edges", &RootBound::edges)
      .def("survivors", &survivors, "upper"_a, "most"_a, "Both ends and the lengths of all edges of tours up to `upper`; None: more than `most`.");
}
