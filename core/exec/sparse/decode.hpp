// Assignments from sparse and dense tables: the values of the steps' variables, from the roots to the leaves.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "exec/sparse/rows.hpp"

namespace elimina::sparse {

// A table that a step reads. Values of variables times strides add up to the words of a sorted key, or, where there are no keys and all cells
// are there, to the cell's number.
struct Readable {
  struct Field {
    i64 variable, word, stride;
  };

  std::vector<Field> fields;
  const u64* keys;  // [rows][words]
  i64 words, rows;
  const void* values;

  // The index of the value at a place; -1 if no tuple is there.
  i64 find(const std::array<u64, kMostWords>& place) const;
};

// The first best value of a step's variable, given those of its tables' other variables. Takes time in the values that a table with keys lists, not in the domain's.
i64 best_value(const Ring& ring, i64 variable, i64 domain, std::span<const Readable> tables, const int* assignment);

}  // namespace elimina::sparse
