// A plan for the rest of a network when some variables are observed: an elimination order, and both passes over its
// bucket tree (core/plan) as records of elimina/program.hpp. The splits of the steps follow a simple rule
// (exec/dense/step_record.hpp).
#pragma once
#include <limits>
#include <memory>
#include <vector>

#include "elimina/config.hpp"
#include "order/graph.hpp"
#include "plan/lists.hpp"

namespace elimina {

// Common part of the plans of all cases: factors in an arena, and the requested marginals.
struct CaseTables {
  std::vector<i64> sizes;     // size of each variable
  plan::Lists scopes;         // scopes of the factors
  std::vector<i64> strides;   // strides of their axes, one factor after another
  std::vector<i64> offsets;   // offset of each factor in the arena
  std::vector<double> least;  // for each factor, log2 of its smallest positive value, rounded down; infinity: none
  std::vector<i64> asked, answer_offsets;  // variables whose marginals are requested, and their places in the answer
  i64 first = 0, last = 0;                 // range of the arena for messages
  i64 factors() const { return i64(offsets.size()); }
};

struct CaseProgram {
  struct Marginal {
    i64 variable, from, to;  // `from`: offset in the arena; -1: the variable is observed; `to`: place in the answer
  };
  struct FactorRead {
    i64 word, factor;  // position in `words` of a factor's offset, and number of the factor
  };
  std::vector<i64> words, starts;
  std::vector<double> least;  // for each step, the sum of `CaseTables::least` of the factors that it reads
  std::vector<FactorRead> reads;
  std::vector<Marginal> marginals;
  std::vector<i64> outputs;    // steps that write the answer: the roots, and the marginals
  std::vector<i64> roots;      // steps whose values times the constants give the total sum
  std::vector<i64> constants;  // offsets of the values of factors with observed variables only
  i64 upward = 0;              // number of steps of the upward pass, which come first
  i64 width = 0, largest = 1;  // induced width, and number of cells of the largest table
  double work = 0;             // number of combinations; reading several large tables counts more
  i64 end = 0;                 // end of the messages in the arena
  i64 steps() const { return i64(starts.size()); }
};

class CasePasses;

class CasePlanner {
 public:
  explicit CasePlanner(CaseTables tables);
  ~CasePlanner();

  // Plans a case. `values`: observed value of each variable, -1 for an unobserved one. The steps read the factors at
  // the observed values. The plan is valid until the next call. Returns nullptr if messages do not fit, or the work is
  // too large.
  const CaseProgram* plan(const int* values, double most_work = std::numeric_limits<double>::infinity());
  // Writes the plan of an order of all variables, without observations. Returns false if a message is too large.
  bool write(const order::Order& order, CaseProgram& program) const;
  const CaseTables& tables() const { return tables_; }

 private:
  void make(const int* values, double most_work);
  void point(CaseProgram& program, const int* values) const;

  CaseTables tables_;
  order::Graph graph_;
  std::unique_ptr<CasePasses> passes_;
  CaseProgram program_;
  bool fits_ = false;
  std::vector<char> observed_;  // marks of the observed variables of the current plan
};

}  // namespace elimina
