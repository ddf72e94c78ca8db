// Semirings by their names, and number types by the dtypes of arrays.
#pragma once
#include <nanobind/ndarray.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "exec/semirings.hpp"

inline elimina::SemiringKind semiring_kind(const std::string& name) {
  constexpr auto& names = elimina::semiring_names;
  const auto position = std::find(names.begin(), names.end(), name);
  if (position == names.end()) throw nanobind::value_error(("unknown semiring " + name).c_str());
  return elimina::SemiringKind(position - names.begin());
}

inline elimina::ValueKind value_kind(nanobind::dlpack::dtype dtype, elimina::SemiringKind semiring) {
  using namespace elimina;
#define ELIMINA_MATCH(kind, ...)                                                                 \
  if (semiring == SemiringKind::kind && dtype == nanobind::dtype<typename __VA_ARGS__::Value>()) \
    return value_kind_of<typename __VA_ARGS__::Value>;
  ELIMINA_TYPED_SEMIRINGS(ELIMINA_MATCH)
#undef ELIMINA_MATCH
  throw nanobind::value_error("the semiring has no kernel for this dtype");
}
