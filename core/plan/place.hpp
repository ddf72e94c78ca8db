// Gives every table its place in the arena, and packs the steps into records (elimina/program.hpp).
#pragma once
#include "plan/steps.hpp"

namespace elimina::plan {

// A device, as its cost model sees it.
struct Speed {
  double bandwidth;                          // bytes a second of a large copy
  double combinations;                       // a second, of one value of the eliminated variable and one output cell
  double step;                               // seconds that each step takes at least
  double lone_bandwidth, lone_combinations;  // of one thread, which runs steps
  double shared;                             // of fewer combinations
};

struct Layout {
  std::vector<i64> offsets, spans;  // of each factor, in elements
  std::vector<i64> strides;         // of each factor's axes, one factor after the other
  std::vector<i64> words, starts;   // the records, and where each starts; none where there would be too many words
  std::vector<int> factors;         // of each table that is read: the factor, -1 for a message
  bool is_deferred =
      false;  // the records are to be written as they are read (records.hpp), and `factors` is empty, too
  std::vector<i64> out_offsets;     // of each step's output, for that
  i64 record_words = 0;             // of all records, also where they were left out
  std::vector<i64> out_spans;       // elements of each step's output; none where there would be too many words
  double factor_cells = 0;          // elements that the factors take
  double arena_cells = 0;           // and all tables that are there at a time
  double largest = 1;               // cells of the largest table
  double work = 0, operations = 0;  // combinations, and one for each table and combination, over all runs
  double seconds = 0;               // of all runs of the steps
  bool is_addressable = true;       // false: no machine holds the arena; offsets, strides and spans mean nothing
};

// `keep`: outputs stay when they have been read; else only lasting ones do, and others make room for later ones. `levels`: of the
// steps, ascending: a message that a step of a higher level reads stays, too; empty: all are 0. `runs`: how often each level's steps run.
// `most_words`: of records; a layout with more has its figures alone. `deferred_words`: of records, from which they are deferred.
Layout lay_out(const Steps& steps, i64 factors, std::span<const i64> sizes, i64 itemsize, bool keep,
               std::span<const int> levels, std::span<const double> runs, const Speed& speed, i64 most_words,
               i64 deferred_words);

}  // namespace elimina::plan
