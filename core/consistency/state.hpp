// Domains and shifted costs of one thread, and the trail that undoes their changes.
#pragma once
#include <span>
#include <vector>

#include "network.hpp"

namespace elimina::consistency {

class State {
 public:
  explicit State(const Network& network);

  // `undo` takes back all changes since the last `mark`.
  void mark();
  void undo();
  std::size_t depth() const { return marks_.size(); }

  Cost constant() const { return constant_; }
  void raise(Cost by) { constant_ += by; }

  int count(Var v) const { return count_[v]; }
  // True if the variable has more than one value and is not retired.
  bool is_free(Var v) const { return free_place_[v] < free_count_; }
  // Values in arbitrary order.
  std::span<const int> values(Var v) const {
    return {values_.data() + network_.first[v], static_cast<std::size_t>(count_[v])};
  }
  // Value of a variable that is not free.
  int value(Var v) const { return values_[network_.first[v]]; }
  bool has(Var v, int x) const { return position_[network_.first[v] + x] < count_[v]; }
  // Free variables in arbitrary order.
  std::span<const Var> free() const { return {free_.data(), static_cast<std::size_t>(free_count_)}; }

  // `remove` removes the value x, `assign` removes all values but x. The caller ensures that each variable keeps at
  // least one value.
  void remove(Var v, int x);
  void assign(Var v, int x);

  // Makes a variable no longer free, although it keeps its values.
  void retire(Var v);

  // Adds cells of cost 0, or removes the last ones.
  void resize(std::size_t cells) { cells_.resize(cells, 0); }
  std::size_t cells() const { return cells_.size(); }

  const Cost* unary(Var v) const { return cells_.data() + network_.first[v]; }
  const Cost* shift(const Function& f, int position) const { return cells_.data() + f.shift[position]; }
  Cost& unary_cell(Var v, int x) { return noted(network_.first[v] + x); }
  Cost& shift_cell(const Function& f, int position, int x) { return noted(f.shift[position] + x); }

 private:
  struct Mark {
    std::size_t written, shrunk;
    int free_count;
    Cost constant;
  };

  Cost& noted(std::size_t cell) {
    written_.push_back({cell, cells_[cell]});
    return cells_[cell];
  }
  void swap(Var v, int from, int to);
  void shrink(Var v, int count);

  const Network& network_;
  Cost constant_;
  std::vector<Cost> cells_;
  std::vector<int> values_, position_, count_;
  std::vector<Var> free_;
  std::vector<int> free_place_;
  int free_count_ = 0;
  std::vector<std::pair<std::size_t, Cost>> written_;
  std::vector<std::pair<Var, int>> shrunk_;
  std::vector<Mark> marks_;
};

}  // namespace elimina::consistency
