#include "cheapest_words.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
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

void make_sequence(WordSequence* self, const ColumnNumbers& firsts, const ColumnNumbers& columns,
                   const ColumnNumbers& symbols, std::size_t states, std::size_t alphabet,
                   const ColumnNumbers& transitions, std::size_t start, const ColumnNumbers& accepting) {
  const auto state_count = static_cast<std::int64_t>(states);
  if (firsts.size() < 1 || firsts.data()[0] != 0 || !std::ranges::is_sorted(span_of(firsts)) ||
      firsts.data()[firsts.size() - 1] != static_cast<std::int64_t>(columns.size()) ||
      symbols.size() != columns.size() || transitions.size() != states * alphabet || start >= states ||
      !are_within(transitions, -1, state_count) || !are_within(accepting, 0, state_count) ||
      !are_within(symbols, 0, static_cast<std::int64_t>(alphabet)))
    throw nb::value_error("an automaton's arrays do not fit together");
  new (self) WordSequence{{}, list_of(columns), list_of(symbols), states, alphabet, list_of(transitions), start, {}};
  for (const std::int64_t first : span_of(firsts)) self->firsts.push_back(static_cast<std::size_t>(first));
  self->is_accepting.resize(states, 0);
  for (const std::int64_t state : span_of(accepting)) self->is_accepting[static_cast<std::size_t>(state)] = 1;
}

void make_words(BoundWords* self, const std::vector<WordSequence*>& sequences, std::size_t columns) {
  std::vector<WordSequence> copies;
  for (const WordSequence* sequence : sequences) {
    for (const std::int64_t column : sequence->columns)
      if (column < 0 || column >= static_cast<std::int64_t>(columns)) throw nb::index_error("there is no such column");
    copies.push_back(*sequence);
  }
  new (self) BoundWords{CheapestWords(std::move(copies)), columns};
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
  nb::class_<WordSequence>(m, "CpWordSequence", "An automaton over a sequence of positions, each with its columns.")
      .def("__init__", &make_sequence, "firsts"_a, "columns"_a, "symbols"_a, "states"_a, "alphabet"_a, "transitions"_a,
           "start"_a, "accepting"_a,
           "`firsts`: start of each position's columns in `columns`, and the end. `symbols`: symbol of each column. "
           "`states`, `alphabet`: numbers of states and of symbols. `transitions`: next state for each state and "
           "symbol; -1: none. `start`: first state. `accepting`: last states.");
  nb::class_<BoundWords>(m, "CpCheapestWords",
                         "Cheapest words of automata over columns, which are values of variables.")
      .def("__init__", &make_words, "sequences"_a, "columns"_a, "`columns`: number of columns of all sequences.")
      .def("least", &least<double>, "costs"_a, "The sum of the least costs, and the columns; None: there is no word.")
      .def("least", &least<std::int64_t>, "costs"_a)
      .def("excess", &excess<double>, "costs"_a,
           "How much more the cheapest word with a column costs; 0 for columns of no sequence.")
      .def("excess", &excess<std::int64_t>, "costs"_a);
}

}  // namespace elimina::cp
