// Common types of the constraint solver: values, views of variables, events.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace elimina::cp {

using Value = std::int64_t;

// Limit of all bounds, so that differences and sums of a few bounds stay within 64 bits.
inline constexpr Value kLimit = Value{1} << 52;

// A range up to this width (greatest minus least value) gets a row of bits with its first hole. In a wider range, each
// hole is stored separately and costs a lookup, so propagators remove only bounds and single values there.
inline constexpr Value kListed = (Value{1} << 16) - 1;

// A view of a variable: scale * variable + offset. A Boolean x is a variable of 0 and 1, and its negation is the view 1
// - x.
struct View {
  std::int32_t var = -1;
  std::int32_t scale = 1;
  Value offset = 0;

  View operator-() const { return {var, -scale, -offset}; }
  View operator+(Value by) const { return {var, scale, offset + by}; }
  View operator-(Value by) const { return {var, scale, offset - by}; }
};

inline View negation(View b) { return {b.var, -b.scale, 1 - b.offset}; }

using Views = std::vector<View>;
using Values = std::vector<Value>;

// True if two of the views are of one variable.
inline bool repeats(const Views& xs) {
  std::vector<int> variables;
  for (const View x : xs) variables.push_back(x.var);
  std::sort(variables.begin(), variables.end());
  return std::adjacent_find(variables.begin(), variables.end()) != variables.end();
}

// Events of a domain. Every change includes `kDomain`.
using Events = std::uint8_t;
inline constexpr Events kFix = 1, kLower = 2, kUpper = 4, kDomain = 8, kBounds = kLower | kUpper;

// Error of a constraint that cannot be posted; the text gives the reason.
struct Refused : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

inline Value floor_div(Value a, Value b) {
  const Value q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

inline Value ceil_div(Value a, Value b) {
  const Value q = a / b;
  return q + ((a % b != 0) && ((a < 0) == (b < 0)));
}

}  // namespace elimina::cp
