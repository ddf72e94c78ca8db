#include "approx/transcendental.hpp"

#include "versions.hpp"

namespace elimina::approx {

ELIMINA_VERSIONS void exponentials(double* values, i64 count) {
  for (i64 i = 0; i < count; ++i) values[i] = exponential(values[i]);
}

ELIMINA_VERSIONS void logarithms(double* values, i64 count) {
  for (i64 i = 0; i < count; ++i) values[i] = logarithm(values[i]);
}

}  // namespace elimina::approx
