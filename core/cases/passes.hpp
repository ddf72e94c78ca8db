// Writes both passes over the bucket tree of an order, planned by core/plan, as records for one run on factors in an
// arena.
#pragma once
#include <utility>

#include "cases/plan.hpp"
#include "exec/dense/step_record.hpp"
#include "plan/steps.hpp"

namespace elimina {

class CasePasses {
 public:
  explicit CasePasses(const CaseTables& case_tables) : case_tables_(case_tables) {}

  // Plans both passes and writes their records. `order`: the unobserved variables. The caller fills in offsets of
  // factors, and constants. Returns false if a message is too large.
  bool write(const order::Order& order, CaseProgram& program);

 private:
  // A factor without observed variables, or a message; variables are numbered by their position in the order.
  struct Table {
    double cells;
    i64 offset, factor;
    i64 strides;  // start of the strides of its scope
  };

  void number_variables(const order::Order& order);
  void place_factors();
  bool append(const plan::Steps& steps, i64 number, CaseProgram& program);
  void arrange(const plan::Steps& steps, std::span<const int> scope, std::span<const plan::Read> reads);
  i64 first_lo() const;
  void add_table(const plan::Steps& steps, const plan::Read& read, int variable);
  void list_outputs(const plan::Steps& steps, CaseProgram& program) const;
  const Table& table_of(const plan::Read& read) const {
    return tables_[read.source < 0 ? read.scope : factors_ + read.source];
  }

  const CaseTables& case_tables_;
  order::Order variables_;
  std::vector<int> position_;
  std::vector<i64> sizes_;
  plan::Lists scopes_;         // scopes of the factors
  std::vector<Table> tables_;  // factors, then each step's output
  i64 factors_ = 0;
  // `strides_`: strides of the tables' axes. `along_`: stride of each variable in the step's largest table. `axis_`:
  // position of each variable among the step's axes.
  std::vector<i64> strides_, along_, axis_;
  std::vector<int> sequence_;
  std::vector<std::pair<int, i64>> axes_;
  StepRecord record_;
};

}  // namespace elimina
