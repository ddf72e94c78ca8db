// Reads the answer of a case from the arena in which its program ran.
#pragma once
#include "cases/plan.hpp"
#include "exec/dense/dense.hpp"

namespace elimina {

struct CaseAnswer {
  double log_sum;  // natural logarithm of the total sum
  double sum;      // the total sum, if a double can hold it
  bool sound;      // false: a product may have left the normal range of the arena's values
};

// Writes the marginals of the sum-product semiring to their places in `zone`; returns the total sum.
CaseAnswer read_case(const CaseProgram& program, const CaseTables& tables, const int* values, ValueKind kind,
                     const void* arena, const double* peaks, void* zone);

}  // namespace elimina
