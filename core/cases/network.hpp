// A small network that answers one set of observations after another, each by a plan of its own (cases/plan.hpp): its factors are encoded
// once, and from the observations to the posteriors nothing leaves the core.
#pragma once
#include <optional>
#include <vector>

#include "cases/answer.hpp"
#include "tables/encode.hpp"

namespace elimina {

struct CasePosteriors {
  std::vector<double>
      shares;  // each variable's probabilities, one variable after the other; meaningless where the sum is 0, empty where not asked for
  double log_sum, sum;  // natural logarithm of the sum of everything, and the sum itself where a double holds it
  i64 width, largest;   // induced width, and cells of the largest table
  double work;          // combinations
  i64 cells;            // of all tables
};

class CaseNetwork {
 public:
  // `rule`: `products`, or `support` to count what is allowed. `sizes`: of all variables. `cells`: that the tables and messages may take at most; `work`: combinations of a run at most.
  // `posteriors`: asked for; the sum alone needs only the upward pass.
  CaseNetwork(const tables::Tables& tables, tables::Sense sense, tables::Rule rule, std::vector<i64> sizes, i64 cells,
              double work, bool posteriors);

  // The sum, and the posteriors of all variables, `values`: the index of each one's observed state, -1 where there is none. Nothing where they would take
  // too much room or time, or a product may have left the range of doubles. Throws Stopped if `poll` ends it.
  //
  // Once a plan is kept, its steps are restricted to what is observed.
  std::optional<CasePosteriors> answer(const int* values, const DensePoll& poll);

  // Keep a plan of an order of all variables for all answers from now on. False: it does not fit, and each answer has a plan of its own as before.
  bool keep(const std::vector<int>& order);

  const std::vector<i64>& sizes() const { return sizes_; }

 private:
  void encode(const tables::Tables& tables, tables::Sense sense, tables::Rule rule, CaseTables& made);
  bool run(const CaseProgram& program, const int* values, const DensePoll& poll);
  void divide(std::vector<double>& zone) const;

  std::vector<i64> sizes_;
  double most_work_;
  i64 shares_ = 0;      // numbers of the posteriors that are asked for
  i64 exponent_ = 0;    // power of two that was taken out of the factors
  bool usable_ = true;  // every variable has a factor, and encoding kept every product
  std::vector<double> arena_, peaks_;
  std::optional<CasePlanner> planner_;
  std::optional<CaseProgram> kept_;
  std::unique_ptr<DenseExecutor> executor_;
};

}  // namespace elimina
