// Cardinality, domain consistent (Regin, AAAI 1996), on rows of bits.
//
// An assignment of all variables within the counts is kept between calls and repaired. The residual graph of its flow
// is contracted to the values: k leads to w if a variable with value k may have w; k leads to the sink if k may occur
// once more; the sink leads to k if k may occur once less. So k's row is the union of the rows of its variables. All
// uncounted values are one node without a limit.
//
// Possible changes of values lie within strongly connected components of this graph. One search finds the components, a
// word at a time (Quimper and others, CP 2004, contract the graph in the same way).
#pragma once
#include "components.hpp"
#include "cp/constraints.hpp"

namespace elimina::cp {

class GlobalCardinality final : public Propagator {
 public:
  // True if the rows take little enough memory.
  static bool fits(const Views& xs, const Values& values);

  // `values`: in ascending order, without repetitions.
  GlobalCardinality(Views xs, Values values, Views counts);

  void attach(Engine& engine) override;
  Outcome propagate(Engine& engine) override;

 private:
  using Word = std::uint64_t;
  static constexpr int kNone = -1;

  Word* row(std::size_t i) { return rows_.data() + i * words_; }
  static bool has(const Word* words, int bit) { return words[bit / 64] >> (bit % 64) & 1; }
  static void add(Word* words, int bit) { words[bit / 64] |= Word{1} << (bit % 64); }
  int first_of(const Word* words) const;

  void load(const Domains& d);
  void load_row(const Domains& d, std::size_t i);
  bool load_counts(const Domains& d);
  Value count(int k) const { return static_cast<Value>(members_[static_cast<std::size_t>(k)].size()); }
  Value min_count(int k) const { return min_counts_[static_cast<std::size_t>(k)]; }
  Value max_count(int k) const { return max_counts_[static_cast<std::size_t>(k)]; }

  void release(int i);
  void assign_value(int i, int k);
  const Word* leads(int k);
  int reach(const Word* sources, const Word* targets);
  int shift(int target);
  const Word* can_take();
  const Word* can_give(int without);

  bool repair();
  bool fill(int k);
  bool tighten(Domains& d);
  void push_up(int k, Value limit);
  void push_down(int k, Value limit);

  void find_components();
  bool filter(Domains& d);
  bool keep_counted(Domains& d, View x) const;

  Views xs_;
  Values values_;
  Views counts_;
  bool is_dense_, repeats_;  // `is_dense_`: nodes are all values from the first to the last counted one
  Value base_;
  int others_, sink_;  // the two nodes after those of counted values: all uncounted values, and the sink
  std::size_t words_;
  std::vector<int> node_;               // node of each count
  Values min_counts_, max_counts_;      // limits of the count of each node
  std::vector<Word> rows_;              // domain of each variable, as nodes
  std::vector<int> assigned_;           // variable -> node or none
  std::vector<std::size_t> positions_;  // position of each variable among the members of its node
  std::vector<std::vector<int>> members_;

  std::vector<Word> leads_;  // for each node, the union of its members' rows
  std::vector<std::uint8_t> is_current_;
  std::vector<Word> sources_, targets_, seen_;
  std::vector<int> queue_, parent_;

  Components search_;
  std::vector<Word> components_;  // nodes of each component
  std::vector<int> component_;    // component of each node
};

}  // namespace elimina::cp
