// Semirings by their names, and number types by the dtypes of arrays.
#pragma once
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <string>

#include "exec/dense/dense.hpp"

inline elimina::SemiringKind semiring_kind(const std::string& name) {
  constexpr std::array<const char*, 4> names{"min-sum", "sum-product", "log-sum-exp", "count"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw nanobind::value_error(("unknown semiring " + name).c_str());
  return elimina::SemiringKind(found - names.begin());
}

inline elimina::ValueKind value_kind(nanobind::dlpack::dtype dtype, elimina::SemiringKind semiring) {
  using elimina::ValueKind;
  const bool minimum = semiring == elimina::SemiringKind::min_sum, count = semiring == elimina::SemiringKind::count;
  if (minimum && dtype == nanobind::dtype<elimina::i16>()) return ValueKind::int16;
  if (minimum && dtype == nanobind::dtype<elimina::i32>()) return ValueKind::int32;
  if (minimum && dtype == nanobind::dtype<elimina::i64>()) return ValueKind::int64;
  if (!count && dtype == nanobind::dtype<float>()) return ValueKind::float32;
  if (!count && dtype == nanobind::dtype<double>()) return ValueKind::float64;
  if (count && dtype == nanobind::dtype<elimina::u64>()) return ValueKind::uint64;
  throw nanobind::value_error("the semiring has no kernel for this dtype");
}
