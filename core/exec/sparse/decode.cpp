#include "exec/sparse/decode.hpp"

#include <algorithm>
#include <ranges>
#include <type_traits>

namespace elimina::sparse {

i64 Readable::find(const std::array<u64, kMostWords>& place) const {
  if (!keys) return i64(place[0]);
  const auto key = [&](i64 row) { return std::span(keys + row * words, std::size_t(words)); };
  const auto wanted = std::span(place).first(std::size_t(words));
  const auto numbers = std::views::iota(i64(0), rows);
  const i64 row = std::ranges::partition_point(numbers, [&](i64 n) { return std::ranges::lexicographical_compare(key(n), wanted); }) -
                  numbers.begin();
  return row < rows && std::ranges::equal(key(row), wanted) ? row : -1;
}

template <class V>
i64 best_value(i64 variable, i64 domain, std::span<const Readable> tables, const int* assignment) {
  using Place = std::array<u64, kMostWords>;
  using Total = std::conditional_t<std::is_integral_v<V>, i64, double>;
  std::vector<std::array<Place, 2>> places(tables.size());  // at the variable's first value, and how far the next one is
  for (std::size_t n = 0; n < tables.size(); ++n)
    for (const auto& [v, word, stride] : tables[n].fields)
      places[n][v == variable][std::size_t(word)] += u64(stride) * (v == variable ? 1 : u64(assignment[v]));
  i64 best = -1;
  Total best_total{};
  for (i64 value = 0; value < domain; ++value) {
    Total total{};
    bool listed = true;
    for (std::size_t n = 0; n < tables.size() && listed; ++n) {
      Place place;
      for (std::size_t w = 0; w < kMostWords; ++w) place[w] = places[n][0][w] + u64(value) * places[n][1][w];
      const i64 at = tables[n].find(place);
      listed = at >= 0;
      if (listed) total += Total(static_cast<const V*>(tables[n].values)[at]);
    }
    if (listed && (best < 0 || total < best_total)) best = value, best_total = total;
  }
  return std::max<i64>(best, 0);
}

template i64 best_value<i32>(i64, i64, std::span<const Readable>, const int*);
template i64 best_value<i64>(i64, i64, std::span<const Readable>, const int*);
template i64 best_value<float>(i64, i64, std::span<const Readable>, const int*);
template i64 best_value<double>(i64, i64, std::span<const Readable>, const int*);

}  // namespace elimina::sparse
