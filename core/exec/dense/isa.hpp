#pragma once
#include "exec/dense/dense.hpp"

namespace elimina {

// On x86, the baseline is for processors without AVX2: it has to run, not to be fast.
#if defined(ELIMINA_X86_DISPATCH)
constexpr bool kBaselineHasVectors = false;
#else
constexpr bool kBaselineHasVectors = true;
#endif

namespace baseline {
constexpr bool kHasVectors = kBaselineHasVectors;
std::unique_ptr<DenseExecutor> make_dense(const DenseRun& run);
}
namespace avx2 {
constexpr bool kHasVectors = true;
std::unique_ptr<DenseExecutor> make_dense(const DenseRun& run);
}
namespace avx512 {
constexpr bool kHasVectors = true;
std::unique_ptr<DenseExecutor> make_dense(const DenseRun& run);
}
}  // namespace elimina
