#include "cases/answer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "elimina/program.hpp"
#include "elimina/semiring.hpp"
#include "plan/steps.hpp"

namespace elimina {
namespace {

constexpr i64 kFarthest = 1 << 12;  // largest exponent: beyond it a double is 0 or infinite
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class V>
class Reader {
 public:
  Reader(const CaseProgram& program, const CaseTables& tables, const V* arena, const double* peaks)
      : program_(program), tables_(tables), arena_(arena), peaks_(peaks) {}

  void copy_marginals(const int* values, V* zone) const {
    for (const auto& [variable, from, to] : program_.marginals) {
      const i64 size = tables_.sizes[variable];
      if (from >= 0) {
        std::copy_n(arena_ + from, size, zone + to);
      } else {
        std::fill_n(zone + to, size, V(0));
        zone[to + values[variable]] = V(1);
      }
    }
  }

  // Each message was divided by a power of two when it was read, so the roots lack these powers.
  CaseAnswer answer() const {
    double log = 0, sum = 1;
    i64 exponent = 0, own_exponent = 0;
    const auto multiply = [&](double factor) {
      log += std::log(factor);
      int factor_exponent = 0;
      sum = std::frexp(sum * factor, &factor_exponent);
      own_exponent += factor_exponent;
    };
    for (i64 number = 0; number < program_.upward; ++number) exponent += scale_exponent<V>(peaks_[2 * number]);
    for (const i64 number : program_.roots) {
      exponent -= scale_exponent<V>(peaks_[2 * number]);
      multiply(double(arena_[step(number)[kOut]]));
    }
    for (const i64 cell : program_.constants) multiply(double(arena_[cell]));
    return {log + double(exponent) * std::numbers::ln2,
            std::ldexp(sum, int(std::clamp(exponent + own_exponent, -kFarthest, kFarthest))), sound()};
  }

  // True if products of values, each as small as its table allows, stay in the normal range: the opposite of
  // `Scales.may_underflow`.
  bool sound() const {
    const double smallest = std::numeric_limits<V>::min_exponent - 1 + 2 * plan::kMostTables;
    for (i64 number = 0; number < program_.steps(); ++number) {
      const StepView read = step(number);
      double low = program_.least[number];
      for (i64 t = 0; t < read[kTables]; ++t)
        if (const i64 source = read.table(t).source(); source >= 0)
          low += lowest(peaks_[2 * source], peaks_[2 * source + 1]);
      if (low < smallest) return false;
    }
    return true;
  }

 private:
  StepView step(i64 number) const { return {program_.words.data() + program_.starts[number]}; }

  static double lowest(double high, double low) {
    return low > 0 ? double(exponent_of(low) - scale_exponent<V>(high)) : kInfinity;
  }

  // `std::ilogb` of a positive number, without a function call for normal numbers.
  static int exponent_of(double value) {
    const int bits = int(std::bit_cast<u64>(value) >> 52);
    return bits ? bits - 1023 : std::ilogb(value);
  }

  const CaseProgram& program_;
  const CaseTables& tables_;
  const V* arena_;
  const double* peaks_;
};

template <class V>
CaseAnswer read(const CaseProgram& program, const CaseTables& tables, const int* values, const void* arena,
                const double* peaks, void* zone) {
  const Reader<V> reader(program, tables, static_cast<const V*>(arena), peaks);
  reader.copy_marginals(values, static_cast<V*>(zone));
  return reader.answer();
}

}  // namespace

CaseAnswer read_case(const CaseProgram& program, const CaseTables& tables, const int* values, ValueKind kind,
                     const void* arena, const double* peaks, void* zone) {
  return (kind == ValueKind::float32 ? read<float> : read<double>)(program, tables, values, arena, peaks, zone);
}

}  // namespace elimina
