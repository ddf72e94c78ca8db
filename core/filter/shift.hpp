// Cost shifting (reparametrisation) along unary separators until the constant is a strong lower bound.
#pragma once
#include "filter.hpp"

namespace elimina::filter {

// Sequential reweighted message passing (Kolmogorov, 2015) on functions of any arity, in integers. Values and cells
// that are part of no solution below the upper bound are removed. The costs of solutions below it do not change.
class Shifter {
 public:
  explicit Shifter(const Network& network);

  // Runs up to `passes` passes, each forward and backward, until one gains less than `least_gain`, or until a stop
  // request.
  void run(int passes, Cost least_gain);
  // Sets the limit: values and cells are removed if all solutions with them cost more.
  void set_limit(Cost limit) { limit_ = limit; }

  Cost bound() const { return constant_; }
  bool infeasible() const { return constant_ > limit_; }
  // The variable at which the bound passed the limit.
  Var blamed() const { return blamed_; }
  const std::vector<Cost>& unary(Var v) const { return unary_[v]; }
  std::vector<std::vector<int>> kept() const;
  // The equivalent network, with unary costs as functions.
  Network network() const;

 private:
  struct Incidence {
    int function;
    std::size_t stride;
    bool first, last;
  };
  void visit(Var v, bool forward);
  void least(const Incidence& incidence, Var v);
  void shift(const Incidence& incidence, Var v);
  void drop_cells();

  std::vector<int> size_;
  std::vector<Function> functions_;
  std::vector<std::vector<Cost>> unary_;
  std::vector<std::vector<Incidence>> touching_;
  std::vector<Cost> message_;
  Cost constant_, limit_, upper_;
  Var blamed_ = -1;
};

}  // namespace elimina::filter
