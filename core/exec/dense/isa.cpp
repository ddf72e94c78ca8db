// The kernels of steps, compiled once for each instruction set; ELIMINA_ISA is the name of the current one.
#include "exec/dense/isa.hpp"

#include "exec/dense/step.hpp"

namespace elimina::ELIMINA_ISA {
namespace {

using Made = std::unique_ptr<StepKernels>;

template <class R>
Made make(const DenseRun& run, R ring) {
  if constexpr (kHasLogSums || !weighted<R>) return std::make_unique<Kernels<R>>(run, ring);
  else return (void)ring, baseline::make_kernels(run);
}

}  // namespace

std::unique_ptr<StepKernels> make_kernels(const DenseRun& run) {
  return with_semiring<1>(run, [&](auto ring) { return make(run, ring); });
}

}  // namespace elimina::ELIMINA_ISA
