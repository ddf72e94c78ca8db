// Gives every table its place in the arena, and packs the steps into records (elimina/program.hpp).
#pragma once
#include "plan/steps.hpp"

namespace elimina::plan {

// Speed of a device, in the terms of its cost model.
struct Speed {
  double bandwidth;     // bytes per second of a large copy
  double combinations;  // combinations of a value of the eliminated variable and an output cell, per second
  double step;          // least seconds of a step
  double lone_bandwidth, lone_combinations;  // `bandwidth` and `combinations` of one thread
  double shared;                             // combinations of the smallest step that all threads share
  double product_speed;  // combinations per second of a matrix product, relative to those of other steps
};

struct Layout {
  std::vector<i64> offsets, spans;  // offset and length of each factor, in elements
  std::vector<i64> strides;         // strides of each factor's axes, one factor after another
  std::vector<i64> words, starts;   // the records and their starts; empty if they are deferred or have too many words
  std::vector<int> factors;         // for each table that is read: the factor; -1: a message
  bool is_deferred = false;         // records are written when they are read (records.hpp), and `factors` is empty
  std::vector<i64> out_offsets;     // offset of each step's output; empty unless records are deferred
  i64 record_words = 0;             // number of words of all records, even if they are not stored
  std::vector<i64> out_spans;       // number of elements of each step's output; empty if there are too many words
  double factor_cells = 0;          // number of elements of the factors
  double arena_cells = 0;           // number of elements of the arena
  double largest = 1;               // number of cells of the largest table
  double work = 0, operations = 0;  // combinations, and combinations times tables, over all runs
  double seconds = 0;               // estimated seconds of all runs of the steps
  bool is_addressable = true;       // false: no machine holds the arena; offsets, strides and lengths have no meaning
};

// Returns the layout of steps. A table's memory is reused after its last reader, unless the table stays. `kept_from`:
// tables that are read last by this step or a later one stay; of the others, only those in `Steps::lasting` stay.
// `levels`: level of each step, ascending: a message with a reader of a higher level stays, too; empty: all 0. `runs`:
// number of runs of each level's steps. `most_words`: largest number of words of records; a larger layout has figures
// only. `deferred_words`: smallest number of words of records that are deferred.
Layout lay_out(const Steps& steps, i64 factors, std::span<const i64> sizes, i64 itemsize, i64 kept_from,
               std::span<const int> levels, std::span<const double> runs, const Speed& speed, i64 most_words,
               i64 deferred_words);

}  // namespace elimina::plan
