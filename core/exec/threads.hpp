// OpenMP's numbers of threads, also where there is no OpenMP.
#pragma once
#if defined(_OPENMP)
#include <omp.h>
#else
inline int omp_get_thread_num() { return 0; }
inline int omp_get_num_threads() { return 1; }
#endif
