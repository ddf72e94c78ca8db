// The loader chooses the best of several versions of a function, as far as the system can.
#pragma once
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define ELIMINA_VERSIONS __attribute__((target_clones("avx512f", "avx2", "default")))
// Versions with fused multiplications and additions, whose results differ in the last digits.
#define ELIMINA_FUSED_VERSIONS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ELIMINA_VERSIONS
#define ELIMINA_FUSED_VERSIONS
#endif
