// Makes the semiring that a program names at run time, from the list in elimina/semiring.hpp.
#pragma once
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "elimina/semiring.hpp"

namespace elimina {

#define ELIMINA_KIND(kind, ...) kind,
#define ELIMINA_NAME(kind, name, ...) name,
enum class SemiringKind { ELIMINA_SEMIRINGS(ELIMINA_KIND) };
inline constexpr std::array semiring_names{ELIMINA_SEMIRINGS(ELIMINA_NAME)};
#undef ELIMINA_KIND
#undef ELIMINA_NAME

enum class ValueKind { int16, int32, int64, float32, float64, uint64 };

template <class T>
inline constexpr ValueKind value_kind_of = ValueKind::float64;
template <>
inline constexpr ValueKind value_kind_of<i16> = ValueKind::int16;
template <>
inline constexpr ValueKind value_kind_of<i32> = ValueKind::int32;
template <>
inline constexpr ValueKind value_kind_of<i64> = ValueKind::int64;
template <>
inline constexpr ValueKind value_kind_of<float> = ValueKind::float32;
template <>
inline constexpr ValueKind value_kind_of<u64> = ValueKind::uint64;

// Calls a function with the semiring of a choice, whose members are semiring, value, parameter and integer_parameter.
// Throws std::invalid_argument if the semiring lacks this type of values, or the type has fewer than `fewest_bytes`
// bytes.
template <int fewest_bytes, class Choice, class Use>
auto with_semiring(const Choice& choice, Use&& use) {
  const auto call = [&]<class R>() {
    using V = typename R::Value;
    return use(semiring_of<R>(is_integer<V> ? V(choice.integer_parameter) : V(choice.parameter)));
  };
#define ELIMINA_CALL(kind, ...)                                                                              \
  if constexpr (sizeof(typename __VA_ARGS__::Value) >= fewest_bytes)                                         \
    if (choice.semiring == SemiringKind::kind && choice.value == value_kind_of<typename __VA_ARGS__::Value>) \
      return call.template operator()<__VA_ARGS__>();
  ELIMINA_TYPED_SEMIRINGS(ELIMINA_CALL)
#undef ELIMINA_CALL
  throw std::invalid_argument("the semiring has no values of this type");
}

}  // namespace elimina
