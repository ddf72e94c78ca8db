// A small network that answers sets of observations one by one, each with its own plan (cases/plan.hpp): factors are
// encoded once, and all work from observations to posteriors stays in the core.
#pragma once
#include <optional>
#include <vector>

#include "cases/answer.hpp"
#include "tables/encode.hpp"

namespace elimina {

struct CasePosteriors {
  std::vector<double> shares;  // each variable's probabilities, one variable after another; empty: not requested
  double log_sum, sum;         // natural logarithm of the total sum, and the sum itself if a double can hold it
  i64 width, largest;          // induced width, and number of cells of the largest table
  double work;                 // number of combinations
  i64 cells;                   // number of cells of all tables
};

class CaseNetwork {
 public:
  // `rule`: `products`, or `support` to count allowed tuples. `sizes`: sizes of all variables. `cells`: limit on the
  // cells of tables and messages; `work`: limit on the combinations of a run. `posteriors`: true if they are requested;
  // the sum alone needs only the upward pass.
  CaseNetwork(const tables::Tables& tables, tables::Sense sense, tables::Rule rule, std::vector<i64> sizes, i64 cells,
              double work, bool posteriors);

  // Returns the sum, and the posteriors of all variables. `values`: index of each variable's observed state; -1: not
  // observed. Returns nullopt if the answer would take too much memory or time, or if a product may have left the range
  // of doubles. Throws Stopped if `poll` ends it.
  //
  // If a plan is kept, its steps are restricted to the unobserved variables.
  std::optional<CasePosteriors> answer(const int* values, const DensePoll& poll);

  // Keeps the plan of an order of all variables for all later answers. Returns false if the plan does not fit: each
  // answer still makes its own plan then.
  bool keep(const std::vector<int>& order);

  const std::vector<i64>& sizes() const { return sizes_; }

 private:
  void encode(const tables::Tables& tables, tables::Sense sense, tables::Rule rule, CaseTables& case_tables);
  bool run(const CaseProgram& program, const int* values, const DensePoll& poll);
  void divide(std::vector<double>& zone) const;

  std::vector<i64> sizes_;
  double most_work_;
  i64 shares_ = 0;      // number of probabilities in the requested posteriors
  i64 exponent_ = 0;    // exponent of the power of two that was divided out of the factors
  bool usable_ = true;  // true if every variable has a factor, and the encoding is exact
  std::vector<double> arena_, peaks_;
  std::optional<CasePlanner> planner_;
  std::optional<CaseProgram> kept_;
  std::unique_ptr<DenseExecutor> executor_;
};

}  // namespace elimina
