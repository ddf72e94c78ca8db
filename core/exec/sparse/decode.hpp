// Assignments from sparse and dense tables: the values of the steps' variables, from the roots to the leaves.
#pragma once
#include <algorithm>
#include <array>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include "exec/sparse/rows.hpp"

namespace elimina::sparse {

// A table that a step reads. Values of variables times strides add up to the words of a sorted key, or, where there are no keys and all cells
// are there, to the cell's number.
struct Readable {
  struct Field {
    i64 variable, word, stride;
  };
  using Place = std::array<u64, kMostWords>;

  std::vector<Field> fields;
  const u64* keys;  // [rows][words]
  i64 words, rows;
  const void* values;

  // The index of the value at a place; -1 if no tuple is there.
  i64 find(const Place& place) const {
    if (!keys) return i64(place[0]);
    const auto key = [&](i64 row) { return std::span(keys + row * words, std::size_t(words)); };
    const auto wanted = std::span(place).first(std::size_t(words));
    const auto numbers = std::views::iota(i64(0), rows);
    const i64 row = std::ranges::partition_point(numbers, [&](i64 n) { return std::ranges::lexicographical_compare(key(n), wanted); }) -
                    numbers.begin();
    return row < rows && std::ranges::equal(key(row), wanted) ? row : -1;
  }
};

// The first best value of a step's variable, given those of its tables' other variables: the tables' values, of type V, are added.
template <class V>
i64 best_value(i64 variable, i64 domain, std::span<const Readable> tables, const int* assignment, bool least) {
  using Total = std::conditional_t<std::is_integral_v<V>, i64, double>;
  std::vector<std::array<Readable::Place, 2>> places(tables.size());  // at the variable's first value, and how far the next one is
  for (std::size_t n = 0; n < tables.size(); ++n)
    for (const auto& [v, word, stride] : tables[n].fields)
      places[n][v == variable][std::size_t(word)] += u64(stride) * (v == variable ? 1 : u64(assignment[v]));
  i64 best = -1;
  Total best_total{};
  for (i64 value = 0; value < domain; ++value) {
    Total total{};
    bool listed = true;
    for (std::size_t n = 0; n < tables.size() && listed; ++n) {
      Readable::Place place;
      for (std::size_t w = 0; w < kMostWords; ++w) place[w] = places[n][0][w] + u64(value) * places[n][1][w];
      const i64 at = tables[n].find(place);
      listed = at >= 0;
      if (listed) total += Total(static_cast<const V*>(tables[n].values)[at]);
    }
    if (listed && (best < 0 || (least ? total < best_total : total > best_total))) best = value, best_total = total;
  }
  return std::max<i64>(best, 0);
}

}  // namespace elimina::sparse
