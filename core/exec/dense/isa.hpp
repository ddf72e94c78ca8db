// Kernels of one semiring, compiled for one instruction set, which the executor calls for each step.
#pragma once
#include <limits>
#include <memory>

#include "elimina/program.hpp"
#include "exec/dense/dense.hpp"

namespace elimina {

// Largest and smallest positive value of a message.
struct Peak {
  double high = 0, low = std::numeric_limits<double>::infinity();
  void see(double higher, double lower) {
    high = higher > high ? higher : high;
    low = lower < low ? lower : low;
  }
};

class StepKernels {
 public:
  StepKernels(bool scales, bool matches, bool multiplies) : scales(scales), matches(matches), multiplies(multiplies) {}
  virtual ~StepKernels() = default;
  // Sets `cells` cells from `first` on to the semiring's zero.
  virtual void clear(i64 first, i64 cells) = 0;
  // True if `translate` can take the step: the semiring has wide operations, and multiplying the step's tables from
  // left to right associates its products as the step requires.
  virtual bool translates(StepView step) const = 0;
  // Translates a step of few combinations; returns its number for `run_translated`.
  virtual i64 translate(StepView step) = 0;
  virtual Peak run_translated(i64 number) const = 0;
  // Runs a step, one combination after another. `peaks`: output ranges of the program, some of which the step reads.
  virtual Peak run_plain(StepView step, const double* peaks) = 0;
  virtual i64 best_value(StepView step, const double* peaks, const int* assignment) = 0;
  // Prepares a step of many combinations; returns its number of independent items.
  virtual i64 begin(StepView step, const double* peaks, i64 wanted_items) = 0;
  virtual void run(i64 first, i64 last, int thread, Peak& peak) = 0;
  // `begin` and `run` for steps of moment matching.
  virtual i64 begin_matching(StepView step) = 0;
  virtual void run_matching(i64 first, i64 last) const = 0;

  // `scales`: the semiring records output ranges. `matches`: it has moment matching. `multiplies`: it has matrix
  // products.
  const bool scales, matches, multiplies;
};

// On x86, the baseline is for processors without AVX2 and need not be fast.
#if defined(ELIMINA_X86_DISPATCH)
constexpr bool kBaselineHasVectors = false;
#else
constexpr bool kBaselineHasVectors = true;
#endif

// The semiring LogSumExp is compiled for the baseline only: most of its time goes to `exp`.
namespace baseline {
constexpr bool kHasVectors = kBaselineHasVectors, kHasLogSums = true;
std::unique_ptr<StepKernels> make_kernels(const DenseRun& run);
}  // namespace baseline
namespace avx2 {
constexpr bool kHasVectors = true, kHasLogSums = false;
std::unique_ptr<StepKernels> make_kernels(const DenseRun& run);
}  // namespace avx2
namespace avx512 {
constexpr bool kHasVectors = true, kHasLogSums = false;
std::unique_ptr<StepKernels> make_kernels(const DenseRun& run);
}  // namespace avx512
}  // namespace elimina
