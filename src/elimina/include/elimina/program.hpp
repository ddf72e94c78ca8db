// A plan packed into 64-bit words, read alike by the CPU core and by the kernels; elimina/planning/program.py writes it.
//
// All tables live in one arena: the factors first, then the messages. A step computes, for every cell of its output,
//     out[o] = sum over d of (lhs_1 x lhs_2 x ...) x (rhs_1 x rhs_2 x ...) x streamed_1 x streamed_2 ...    in exactly this association,
// with the semiring's sum and product. The output's axes are split into slow, middle and fast ones (outer, mid and lo in names;
// fast: the trailing axes, which are contiguous in the output): an lhs table has no fast axis, an rhs table no middle axis, a
// streamed table may have any. So for one slow cell, lhs is a small matrix [middle][d], rhs a small matrix [d][fast], and only
// the streamed table has to be read for every (middle, d, fast).
//
// A step may eliminate several variables at once: d then counts their combinations, the last variable fastest, and a
// table with one of these variables has all of them, with one stride. The variables after the first one are listed at
// the record's end.
//
// A moment-matching step (elimina/matching.hpp) computes the correction of one of several mini-buckets instead. Its tables
// are the marginals of all of them over the output's axes, in the same order for each mini-bucket; kTablesA is the
// number of this mini-bucket, kTablesB is 0, and the split of the axes has no meaning.
#pragma once
#include "config.hpp"

namespace elimina {

enum StepWord : int {
  kWords,     // length of this record
  kDomain,    // combinations of values of the eliminated variables; 1 for a join or moment matching
  kVariable,  // the eliminated variable, or the first one, kJoin or kMatching
  kAxes,      // axes of the output, in the order slow, middle, fast; slow to fast within each group
  kOuterAxes,
  kMidAxes,
  kOuterCells,
  kMidCells,
  kLoCells,  // below 2^31
  kTables,
  kTablesA,  // number of lhs tables, which come first
  kTablesB,  // number of rhs tables, which come next; the rest are streamed
  kOut,      // offset of the output in the arena, in elements
  kWeight,   // the bits of a double: LogSumExp's weight; unused in other semirings
  kHeader
};

constexpr i64 kJoin = -1, kMatching = -2;

// In records of small steps on a device, the upper half of kAxisVariable is 2^32 / size, rounded down, or 2^32 - 1 for size 1.
enum AxisWord : int { kSize, kOutStride, kAxisVariable, kAxisWords };
enum TableWord : int { kOffset, kDomainStride, kSource, kStrides };  // kSource: the step that wrote it; -1 for a factor
// For each further variable that the step eliminates.
enum OtherWord : int { kOtherVariable, kOtherValues, kOtherWords };

struct TableView {
  const i64* words;
  ELIMINA_HD i64 offset() const { return words[kOffset]; }
  ELIMINA_HD i64 domain_stride() const { return words[kDomainStride]; }
  ELIMINA_HD i64 source() const { return words[kSource]; }
  ELIMINA_HD i64 stride(i64 axis) const { return words[kStrides + axis]; }
};

struct StepView {
  const i64* words;
  ELIMINA_HD i64 operator[](StepWord word) const { return words[word]; }
  ELIMINA_HD double weight() const {
    double weight;
    memcpy(&weight, words + kWeight, sizeof weight);
    return weight;
  }
  ELIMINA_HD i64 lo_axis() const { return words[kOuterAxes] + words[kMidAxes]; }
  ELIMINA_HD i64 cells() const { return words[kOuterCells] * words[kMidCells] * words[kLoCells]; }
  ELIMINA_HD i64 size(i64 axis) const { return words[kHeader + axis * kAxisWords + kSize]; }
  ELIMINA_HD i64 out_stride(i64 axis) const { return words[kHeader + axis * kAxisWords + kOutStride]; }
  ELIMINA_HD i64 variable(i64 axis) const { return u32(words[kHeader + axis * kAxisWords + kAxisVariable]); }
  ELIMINA_HD u32 reciprocal(i64 axis) const {
    return u32(u64(words[kHeader + axis * kAxisWords + kAxisVariable]) >> 32);
  }
  ELIMINA_HD TableView table(i64 number) const {
    return {words + kHeader + words[kAxes] * kAxisWords + number * (kStrides + words[kAxes])};
  }

  ELIMINA_HD bool eliminates_several() const { return table(words[kTables]).words != words + words[kWords]; }

  // Stores the value of each eliminated variable in combination d.
  template <class Index>
  ELIMINA_HD void assign(Index* assignment, i64 d) const {
    for (const i64 *first = table(words[kTables]).words, *other = words + words[kWords]; other != first;) {
      other -= kOtherWords;
      assignment[other[kOtherVariable]] = Index(d % other[kOtherValues]);
      d /= other[kOtherValues];
    }
    assignment[words[kVariable]] = Index(d);
  }

  // `cell`: number of a combination of the axes [first, last). `table_index` returns its offset from the start of a
  // table, and `out_index` its offset from the start of the output.
  ELIMINA_HD i64 table_index(TableView table, i64 cell, i64 first, i64 last) const {
    i64 index = 0;
    for (i64 axis = last - 1; axis >= first; --axis) {
      index += cell % size(axis) * table.stride(axis);
      cell /= size(axis);
    }
    return index;
  }
  ELIMINA_HD i64 out_index(i64 cell, i64 first, i64 last) const {
    i64 index = 0;
    for (i64 axis = last - 1; axis >= first; --axis) {
      index += cell % size(axis) * out_stride(axis);
      cell /= size(axis);
    }
    return index;
  }
};

}  // namespace elimina
