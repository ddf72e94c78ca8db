// The loader chooses the best version of a function that the processor supports.
#pragma once
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define ELIMINA_VERSIONS __attribute__((target_clones("avx512f", "avx2", "default")))
// Versions that fuse multiplications and additions, so their results differ in the last digits.
#define ELIMINA_FUSED_VERSIONS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ELIMINA_VERSIONS
#define ELIMINA_FUSED_VERSIONS
#endif
