// Values along a path of the pseudo-tree, and the costs of the next variable's values.
#pragma once
#include <vector>

#include "problem.hpp"

namespace elimina::search {

class Path {
 public:
  explicit Path(const Problem& problem);

  // Sets, for each value of a variable with assigned ancestors, the cost of the bucket's factors and a bound on the
  // subtree.
  void expand(Var v, double* cost, double* bound);

  // Gives a value to an expanded variable.
  void assign(Var v, int x);

  // Bound on the subtree of a child of an assigned variable.
  double below(Var child) const {
    double total = 0;
    for (const int t : problem_.below[child]) total += sent_[t];
    return problem_.rounded(total);
  }

  const std::vector<int>& value() const { return value_; }

 private:
  std::int64_t locate(int t) const {
    std::int64_t cell = head_[t].offset;
    for (int i = head_[t].first; i < head_[t].last; ++i) cell += axes_[i].stride * value_[axes_[i].var];
    return cell;
  }

  // The fields of a table that an expansion reads, stored together to save cache misses.
  struct Head {
    std::int64_t offset, stride;
    int first, last;
  };

  const Problem& problem_;
  std::vector<Head> head_;
  std::vector<Axis> axes_;
  std::vector<int> value_;
  std::vector<std::int64_t> row_;  // offset of the row in each table of expanded variables
  std::vector<double> sent_;       // costs of messages with assigned homes
};

}  // namespace elimina::search
