#include "exec/sparse/decode.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <ranges>
#include <type_traits>

namespace elimina::sparse {

i64 Readable::find(const std::array<u64, kMostWords>& address) const {
  if (!keys) return i64(address[0]);
  const auto key = [&](i64 row) { return std::span(keys + row * words, std::size_t(words)); };
  const auto wanted = std::span(address).first(std::size_t(words));
  const auto numbers = std::views::iota(i64(0), rows);
  const i64 row = std::ranges::partition_point(
                      numbers, [&](i64 n) { return std::ranges::lexicographical_compare(key(n), wanted); }) -
                  numbers.begin();
  return row < rows && std::ranges::equal(key(row), wanted) ? row : -1;
}

namespace {

// Finds the first best value. `ring`: the semiring over the type of totals, which holds products of all tables' values.
template <class V, class R>
i64 best_value_in(const R& ring, i64 variable, i64 domain, std::span<const Readable> tables, const int* assignment) {
  using Address = std::array<u64, kMostWords>;
  using Total = typename R::Value;
  // Offset of each table at the variable's first value, and distance of the next value.
  std::vector<std::array<Address, 2>> addresses(tables.size());
  for (std::size_t n = 0; n < tables.size(); ++n)
    for (const auto& [v, word, stride] : tables[n].fields)
      addresses[n][v == variable][std::size_t(word)] += u64(stride) * (v == variable ? 1 : u64(assignment[v]));
  i64 best = -1;
  Total best_total{};
  const auto consider = [&](i64 value) {
    Total total = ring.one();
    for (std::size_t n = 0; n < tables.size(); ++n) {
      Address address;
      for (std::size_t w = 0; w < kMostWords; ++w) address[w] = addresses[n][0][w] + u64(value) * addresses[n][1][w];
      const i64 row = tables[n].find(address);
      if (row < 0) return;
      total = ring.combine(total, Total(static_cast<const V*>(tables[n].values)[row]));
    }
    if (best < 0 || ring.better(total, best_total) || (total == best_total && value < best))
      best = value, best_total = total;
  };
  // Only values that the shortest sparse table lists can be allowed, so its tuples are read if they are fewer than the
  // domain's values.
  const Readable* shortest = nullptr;
  const Readable::Field* field = nullptr;
  for (const Readable& table : tables) {
    const auto axis = std::ranges::find(table.fields, variable, &Readable::Field::variable);
    if (table.keys && axis != table.fields.end() && (!shortest || table.rows < shortest->rows))
      shortest = &table, field = &*axis;
  }
  if (!shortest || shortest->rows >= domain) {
    for (i64 value = 0; value < domain; ++value) consider(value);
  } else {
    const int shift = std::countr_zero(u64(field->stride));
    const u64 mask = std::bit_ceil(u64(domain)) - 1;
    const auto& [first, step] = addresses[std::size_t(shortest - tables.data())];
    for (i64 row = 0; row < shortest->rows; ++row) {
      const u64* key = shortest->keys + row * shortest->words;
      const u64 value = key[field->word] >> shift & mask;
      bool matches = true;
      for (std::size_t w = 0; w < std::size_t(shortest->words); ++w) matches &= key[w] == first[w] + value * step[w];
      if (matches) consider(i64(value));
    }
  }
  return std::max<i64>(best, 0);
}

}  // namespace

i64 best_value(const Ring& ring, i64 variable, i64 domain, std::span<const Readable> tables, const int* assignment) {
  return with_semiring<4>(ring, [&]<template <class> class R, class V>(const R<V>&) {
    using Total =
        std::conditional_t<std::is_floating_point_v<V>, double, std::conditional_t<std::is_signed_v<V>, i64, V>>;
    constexpr Total infinity = std::numeric_limits<Total>::has_infinity ? std::numeric_limits<Total>::infinity()
                                                                        : std::numeric_limits<Total>::max();
    return best_value_in<V>(semiring_of<R<Total>>(infinity), variable, domain, tables, assignment);
  });
}

}  // namespace elimina::sparse
