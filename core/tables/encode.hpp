// Writing tables into the factor part of an arena, as a semiring wants them, joined where one scope contains the others.
#pragma once
#include "elimina/semiring.hpp"
#include "tables/tables.hpp"

namespace elimina::tables {

#define ELIMINA_RULE(rule) rule,
enum class Rule : std::uint8_t { ELIMINA_ENCODINGS(ELIMINA_RULE) };
#undef ELIMINA_RULE

enum class Number : std::uint8_t { i16, i32, i64, u64, f32, f64 };

// Factors of an arena; factor f has the tables members[f] and the variables scopes[f].
struct Places {
  std::span<const i64> member_starts;
  std::span<const int> members;
  std::span<const i64> starts;
  std::span<const int> scopes;
  std::span<const i64> sizes, strides;  // of each scope's variables
  std::span<const i64> offsets;         // in elements
};

struct Written {
  std::vector<double> ranges;  // products: the largest and the smallest positive value of each factor
  std::vector<i64> exponents;  // products: the power of two that was taken out of each
  std::vector<char> exact;     // products: whether no positive product left the normal range
};

// Write the factors with these numbers. `block`: cells that are worked on at a time.
Written encode(const Tables& tables, Sense sense, Rule rule, i64 limit, const Places& places,
               std::span<const i64> numbers, Number type, char* arena, i64 block);

}  // namespace elimina::tables
