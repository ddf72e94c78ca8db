// Dense tables of reduced costs whose cells are numbered by bit fields: a variable of s values has ceil(log2 s) bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "filter.hpp"

namespace elimina::filter {

using Key = std::uint64_t;
using Value = std::int32_t;
// Cost of an impossible cell. The sum of three such values does not overflow before it is clamped.
inline constexpr Value never = Value{1} << 29;
using Scope = std::vector<Var>;  // ascending: variables that are eliminated first are least significant

inline Value clamp(Value x) { return x < never ? x : never; }

// Widths of the bit fields in which keys of sparse tables hold the variables' values.
class Fields {
 public:
  explicit Fields(const std::vector<int>& size);
  int bits(Var v) const { return bits_[v]; }
  int size(Var v) const { return size_[v]; }
  std::span<const int> widths() const { return bits_; }
  int bits(const Scope& scope) const;
  int shift(Var v, const Scope& whole) const;

 private:
  std::vector<int> size_, bits_;
};

// A table of reduced costs. Cells outside the domains are `never`.
struct Table {
  Scope scope;
  std::vector<Value> value;
};
using TablePtr = std::shared_ptr<const Table>;
using Tables = std::vector<TablePtr>;

Scope join(const Scope& a, const Scope& b);
Scope meet(const Scope& a, const Scope& b);
Scope without(Scope scope, Var v);
bool holds(const Scope& scope, Var v);
bool within(const Scope& subset, const Scope& whole);

Table sum(const Fields& fields, const Tables& tables, Value budget);
Table project(const Fields& fields, const Table& table, const Scope& onto);

// Eliminates v: returns tables over the other variables, whose sum is at most the minimum over v. Mini-buckets have at
// most 2^bits cells; their costs are matched on their common variables before v is eliminated from each.
Tables eliminate(const Fields& fields, Tables tables, Var v, int bits, Value budget);

// Adds tables up as long as the sums have at most 2^bits cells.
Tables pack(const Fields& fields, const Tables& tables, int bits, Value budget);

}  // namespace elimina::filter
