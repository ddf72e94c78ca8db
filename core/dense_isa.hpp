#pragma once
#include "dense.hpp"

namespace elimina {
namespace baseline {
bool run_dense(const DenseRun& run);
}
namespace avx2 {
bool run_dense(const DenseRun& run);
}
namespace avx512 {
bool run_dense(const DenseRun& run);
}
}  // namespace elimina
