// Decodes assignments from sparse and dense tables: finds the values of the steps' variables, from the roots to the
// leaves.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "exec/sparse/rows.hpp"

namespace elimina::sparse {

// A table of a step. Values of variables times strides add up to the words of a sorted key or, without keys, to the
// number of a cell.
struct Readable {
  struct Field {
    i64 variable, word, stride;
  };

  std::vector<Field> fields;
  const u64* keys;  // [rows][words]
  i64 words, rows;
  const void* values;

  // Returns the index of the tuple at an address; -1 if the table does not list it.
  i64 find(const std::array<u64, kMostWords>& address) const;
};

// Returns the first best value of a step's variable, given the values of its tables' other variables; 0 if no value is
// allowed. Visits the values of the domain, or the tuples of the shortest sparse table if these are fewer.
i64 best_value(const Ring& ring, i64 variable, i64 domain, std::span<const Readable> tables, const int* assignment);

}  // namespace elimina::sparse
