// Writes tables into the factor part of an arena, in a semiring's encoding. Tables are joined if the scope of one
// contains those of the others.
#pragma once
#include "elimina/semiring.hpp"
#include "tables/tables.hpp"

namespace elimina::tables {

#define ELIMINA_RULE(rule) rule,
enum class Rule : std::uint8_t { ELIMINA_ENCODINGS(ELIMINA_RULE) };
#undef ELIMINA_RULE

enum class Number : std::uint8_t { i16, i32, i64, u64, f32, f64 };

// Factors of an arena; factor f has the tables members[f] and the variables scopes[f].
struct FactorArrays {
  std::span<const i64> member_starts;
  std::span<const int> members;
  std::span<const i64> starts;
  std::span<const int> scopes;
  std::span<const i64> sizes, strides;  // sizes and strides of each scope's variables
  std::span<const i64> offsets;         // offset of each factor in elements
};

struct Written {
  std::vector<double> ranges;  // for products: the largest and the smallest positive value of each factor
  std::vector<i64> exponents;  // for products: exponent of the power of two divided out of each factor
  std::vector<char> exact;     // for products: true if all positive products are normal numbers
};

// Writes the factors with these numbers. `limit`: cap of integer distances, and integer cost of forbidden cells;
// `block`: largest number of cells that a thread encodes at a time. The numbers written do not depend on `threads`.
Written encode(const Tables& tables, Sense sense, Rule rule, i64 limit, const FactorArrays& factors,
               std::span<const i64> numbers, Number type, char* arena, i64 block, int threads);

}  // namespace elimina::tables
