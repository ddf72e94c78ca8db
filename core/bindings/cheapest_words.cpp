#include "cheapest_words.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arrays.hpp"
#include "cp/cheapest_words.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::cp {
namespace {

using ColumnNumbers = Words<const std::int64_t>;
// Starts of the positions in the list of columns, and the list's end; the columns; the symbol of each column; numbers
// of states and of symbols; transitions [state][symbol] (-1: none); first state; accepting states.
using SequenceArrays = std::tuple<ColumnNumbers, ColumnNumbers, ColumnNumbers, std::size_t, std::size_t, ColumnNumbers,
                                  std::size_t, ColumnNumbers>;

bool are_within(const ColumnNumbers& numbers, std::int64_t least, std::int64_t end) {
  return std::ranges::all_of(span_of(numbers), [=](std::int64_t x) { return x >= least && x < end; });
}

struct BoundWords {
  CheapestWords words;
  std::size_t columns;

  template <class T>
  void check(const Words<const T>& costs) const {
    if (costs.size() != columns) throw nb::value_error("each column has a cost");
  }
};

WordSequence sequence_of(const SequenceArrays& arrays, std::size_t columns) {
  const auto& [firsts, arcs, symbols, states, alphabet, next, start, last] = arrays;
  WordSequence result{{}, list_of(arcs), list_of(symbols), states, alphabet, list_of(next), start, {}};
  const auto count = static_cast<std::int64_t>(states);
  if (firsts.size() < 1 || firsts.data()[0] != 0 || !std::ranges::is_sorted(span_of(firsts)) ||
      firsts.data()[firsts.size() - 1] != static_cast<std::int64_t>(arcs.size()) || symbols.size() != arcs.size() ||
      next.size() != states * alphabet || start >= states || !are_within(next, -1, count) ||
      !are_within(last, 0, count) || !are_within(symbols, 0, static_cast<std::int64_t>(alphabet)) ||
      !are_within(arcs, 0, static_cast<std::int64_t>(columns)))
    throw nb::value_error("an automaton's arrays do not fit together");
  for (const std::int64_t first : span_of(firsts)) result.firsts.push_back(static_cast<std::size_t>(first));
  result.is_accepting.resize(states, 0);
  for (const std::int64_t state : span_of(last)) result.is_accepting[static_cast<std::size_t>(state)] = 1;
  return result;
}

template <class T>
std::optional<std::pair<T, Array<std::int64_t>>> least(BoundWords& bound, const Words<const T>& costs) {
  bound.check(costs);
  std::vector<std::int64_t> chosen;
  const auto sum = bound.words.least(costs.data(), chosen);
  if (!sum) return std::nullopt;
  return std::pair(*sum, array_of(std::move(chosen)));
}

template <class T>
Array<T> excess(BoundWords& bound, const Words<const T>& costs) {
  bound.check(costs);
  std::vector<T> result(bound.columns, 0);
  bound.words.excess(costs.data(), result.data());
  return array_of(std::move(result));
}

}  // namespace

void bind_cheapest_words(nb::module_& m) {
  nb::class_<BoundWords>(m, "CpCheapestWords",
                         "Cheapest words of automata over columns, which are values of variables.")
      .def(
          "__init__",
          [](BoundWords* self, const std::vector<SequenceArrays>& sequences, std::size_t columns) {
            std::vector<WordSequence> checked;
            for (const SequenceArrays& arrays : sequences) checked.push_back(sequence_of(arrays, columns));
            new (self) BoundWords{CheapestWords(std::move(checked)), columns};
          },
          "sequences"_a, "columns"_a,
          "Of each sequence: first columns of its positions and their number, columns, symbols, states, symbols of the "
          "alphabet, "
          "transitions (-1: none), first state, last states.")
      .def("least", &least<double>, "costs"_a, "The sum of the least costs, and the columns; None: there is no word.")
      .def("least", &least<std::int64_t>, "costs"_a)
      .def("excess", &excess<double>, "costs"_a,
           "How much more the cheapest word with a column costs; 0 for columns of no sequence.")
      .def("excess", &excess<std::int64_t>, "costs"_a);
}

}  // namespace elimina::cp
