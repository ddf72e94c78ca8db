#include "filter.hpp"

namespace elimina::filter {

namespace baseline {
Report solve(const Network& network, const Options& options);
Network shifted(const Network& network, double seconds, Cost least_gain, const Poll& poll);
}
namespace bmi2 {
Report solve(const Network& network, const Options& options);
Network shifted(const Network& network, double seconds, Cost least_gain, const Poll& poll);
}

namespace {

#if defined(ELIMINA_X86_DISPATCH)
bool has_bmi2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}
#endif

}  // namespace

Report minimise(const Network& network, const Options& options) {
#if defined(ELIMINA_X86_DISPATCH)
  if (has_bmi2()) return bmi2::solve(network, options);
#endif
  return baseline::solve(network, options);
}

Network shift(const Network& network, double seconds, Cost least_gain, const Poll& poll) {
#if defined(ELIMINA_X86_DISPATCH)
  if (has_bmi2()) return bmi2::shifted(network, seconds, least_gain, poll);
#endif
  return baseline::shifted(network, seconds, least_gain, poll);
}

}  // namespace elimina::filter
