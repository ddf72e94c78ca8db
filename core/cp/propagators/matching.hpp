// AllDifferent, domain consistent (Regin, AAAI 1994), on rows of bits.
//
// A matching of the variables is kept and repaired. A variable can take a value if both are in one strongly connected
// component of the residual graph. The graph is contracted to the variables (a matched value is its variable's node);
// all free values are one node that leads to every variable. Once components are found, the variables and values of
// each are a separate AllDifferent (Gent, Miguel and Nightingale, Artificial Intelligence 172, 2008), so a call visits
// only components with changes. Neighbours are found a word at a time (van Kessel and Quimper, AAAI 2012).
//
// When a component is split, most of its nodes usually stay together. These nodes, the core, are gathered first: they
// lead to free values or, if no value is free, to a variable that leads to all others. Gathering reads a row only up to
// the first word with a node of the core. Only the remaining nodes are searched.
#pragma once
#include <memory>

#include "components.hpp"
#include "cp/constraints.hpp"
#include "cp/device/batch.hpp"
#include "exec/pages.hpp"

namespace elimina::cp {

class Matching final : public Propagator {
 public:
  using Word = std::uint64_t;

  // A set of variables: `order_[first]` to `order_[last - 1]`. Once measured, `from` and `to` limit the words of their
  // values, and `largest` is the variable with the most values.
  struct Subset {
    std::size_t first, last, from, to;
    int largest;
    std::size_t size() const { return last - first; }
  };

  // True if the rows of all variables take little enough memory.
  static bool fits(const Domains& d, const Views& xs);
  static void post(Engine& engine, const Views& xs, Side side);

  Matching(const Domains& d, Views xs, Side side);

  void attach(Engine& engine) override;
  Outcome propagate(Engine& engine) override;

  // Steps of a call that may use a device. `prepare` makes subsets to split into components. Then `divide_here` or
  // `divide` splits them on the CPU, or `settle` takes the result of the device. Functions that return a Boolean return
  // false after a failure.
  [[nodiscard]] bool prepare(Engine& engine);
  Outcome divide_here(Engine& engine);
  [[nodiscard]] bool divide(Engine& engine, std::span<Subset> subsets);
  [[nodiscard]] bool settle(Engine& engine, const Subset& subset, std::span<different::Label> labels,
                            std::span<const different::Loss> losses);

  // Lets a device filter this constraint. On the device, its variables have consecutive numbers from `first_member` on.
  void filter_by(DeviceBatch& device, std::size_t first_member);
  bool is_filtered_by(const DeviceBatch& device) const { return device_ == &device; }
  std::size_t first_member() const { return first_member_; }

  Side side() const { return side_; }
  const Views& views() const { return xs_; }
  Value base() const { return base_; }
  std::size_t words() const { return words_; }
  bool repeats() const { return repeats_; }
  std::span<Subset> subsets() { return subsets_; }
  std::span<const int> order() const { return order_; }
  int match(int i) const { return match_[i]; }
  std::span<const Word> free_values() const { return free_; }
  // Variables whose matches have changed since this list was last cleared; some occur more than once.
  std::vector<int> rematched;

 private:
  Word* row(std::size_t i) { return rows_.data() + i * words_; }
  const Word* load(const Domains& d, int i, const Subset& subset);
  static bool has(const Word* words, std::size_t bit) { return words[bit / 64] >> (bit % 64) & 1; }
  static void add(Word* words, std::size_t bit) { words[bit / 64] |= Word{1} << (bit % 64); }
  static void drop(Word* words, std::size_t bit) { words[bit / 64] &= ~(Word{1} << (bit % 64)); }

  void release(int i);
  Subset subset_of(const Engine& engine, int i) const;
  void measure(const Domains& d, Subset& subset) const;
  bool repair(const Domains& d, Subset& subset);
  bool augment(const Domains& d, int i, const Subset& subset);
  void rematch(std::size_t value, int last);

  bool split(Engine& engine, Subset& subset);
  void find_core(const Domains& d, const Subset& subset);
  void gather(const Domains& d, const Subset& subset);
  bool reaches_all(const Domains& d, int pivot, const Subset& subset);
  void close(Engine& engine, const Subset& subset, const Word* values);
  void close_core(Engine& engine, const Subset& subset);
  void place_next(int i);
  void start_here(Engine& engine);
  bool remove(Domains& d, int i, std::size_t w, Word lost);

  Views xs_;
  Side side_;
  DeviceBatch* device_ = nullptr;
  std::size_t first_member_ = 0;
  Value base_;
  std::size_t words_;
  bool repeats_;                         // true if a variable occurs in two views
  std::vector<Word, Pages<Word>> rows_;  // row of each variable
  std::vector<std::uint64_t> loaded_;    // number of the call that last read each row
  std::uint64_t call_ = 0;
  std::vector<int> match_, owner_;  // variable -> value, value -> variable; -1: none
  std::vector<Word> free_;          // values of some variable that have no owner
  std::vector<int> unmatched_;

  // Components are ranges of `order_`. For each position, a trailed bit says whether a component begins there.
  std::vector<int> order_;
  std::vector<std::size_t> position_;
  std::size_t starts_ = 0;
  std::vector<Subset> subsets_;
  std::vector<std::uint64_t> listed_;  // for each first position of a component, the call that listed the component

  // State of one augmentation or one search for components, whose nodes are values.
  Components components_;
  std::vector<int> parent_, queue_;
  std::vector<Word> members_;  // values of the core
  std::vector<Word> closed_;   // values of complete components
  std::vector<int> rest_;      // variables that are not known to be in the core
  std::size_t fill_ = 0;
  bool alive_ = true;
};

}  // namespace elimina::cp
