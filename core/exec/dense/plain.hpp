// Kernels of steps of few combinations, and of decoding. They visit one combination after another, and are compiled for
// the baseline only.
#pragma once
#include <bit>
#include <vector>

#include "elimina/matching.hpp"
#include "elimina/program.hpp"
#include "elimina/semiring.hpp"
#include "exec/dense/isa.hpp"

namespace elimina {

// Returns the scale of a message with the largest value `peak`: readers multiply the message by it.
template <class V>
static V message_scale(double peak) {
  return V(std::bit_cast<double>(u64(1023 - scale_exponent<V>(peak)) << 52));
}

// An operand of a step, with its scale.
template <class V>
struct Source {
  const V* data;
  i64 domain_stride;
  V scale;
  TableView view;
};

// Member functions are defined in plain.cpp only. In a header, they would also be compiled for newer instruction sets,
// and the linker might choose that code.
template <class R>
class PlainKernels : public StepKernels {
 public:
  using V = typename R::Value;
  using Sum = typename R::Sum;

  PlainKernels(const DenseRun& run, R ring);
  ~PlainKernels() override;

  void clear(i64 first, i64 cells) override;
  Peak run_plain(StepView step, const double* peaks) override;
  i64 best_value(StepView step, const double* peaks, const int* assignment) override;

 protected:
  // Sets the sources of a step.
  void prepare(StepView step, const double* peaks);

  R ring_;
  V* arena_;
  std::vector<Source<V>> sources_;

 private:
  V read(const Source<V>& source, i64 index) const;
  // Returns (lhs...) x (rhs...) x streamed... at the value d of the eliminated variable; every source already points at
  // the output cell.
  V value_at(i64 d) const;

  i64 tables_ = 0, a_ = 0, b_ = 0;
  std::vector<i64> digits_;
};

}  // namespace elimina
