#pragma once
#include "exec/dense/dense.hpp"

namespace elimina {
namespace baseline {
std::unique_ptr<DenseExecutor> make_dense(const DenseRun& run);
}
namespace avx2 {
std::unique_ptr<DenseExecutor> make_dense(const DenseRun& run);
}
namespace avx512 {
std::unique_ptr<DenseExecutor> make_dense(const DenseRun& run);
}
}  // namespace elimina
