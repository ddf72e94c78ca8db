// A call of a constraint by name, with its arguments read as the expected types. Also declares the functions of
// propagators/, each of which posts one kind of constraint.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "constraint_rows.hpp"
#include "solver.hpp"

namespace elimina::cp {

// The arguments of one constraint, read as their expected types.
class ConstraintCall {
 public:
  ConstraintCall(Solver& solver, const std::string& name, const std::vector<Argument>& arguments)
      : solver_(solver), name_(name), arguments_(arguments) {}

  Control control;

  Engine& engine() const { return solver_.engine(); }
  View fixed(Value value) const { return solver_.fixed(value); }
  // Makes a Boolean without a counterpart in the model.
  View new_boolean() const { return solver_.new_variable(0, 1); }
  void add_order(const TaskOrder& order) const { solver_.add_order(order); }
  void add_tasks(TaskGroup group) const { solver_.add_tasks(std::move(group)); }

  [[noreturn]] void refuse(const std::string& why) const { throw Refused(name_ + ": " + why); }

  std::size_t length(std::size_t i) const { return arguments_[i].size(); }

  Views views(std::size_t i) const {
    Views result = arguments_[i];
    for (View& x : result) x = checked(x);
    return result;
  }

  View view(std::size_t i) const {
    expect_single(i);
    return checked(arguments_[i][0]);
  }

  View boolean(std::size_t i) const {
    expect_single(i);
    return checked_boolean(checked(arguments_[i][0]));
  }

  Views booleans(std::size_t i) const {
    Views result = views(i);
    for (const View x : result) checked_boolean(x);
    return result;
  }

  // True if an argument consists of constants. Fixed variables do not count as constants: all copies of a model have to
  // agree, and some copies may have fixed more variables than others.
  bool is_constant(std::size_t i) const {
    return std::all_of(arguments_[i].begin(), arguments_[i].end(), [](View x) { return x.var < 0; });
  }

  Values values(std::size_t i) const {
    Values result;
    for (const View x : arguments_[i]) {
      if (x.var >= 0) refuse("argument " + std::to_string(i + 1) + " consists of constants");
      result.push_back(x.offset);
    }
    return result;
  }

  Value value(std::size_t i) const {
    expect_single(i);
    return values(i)[0];
  }

  void same_length(std::size_t i, std::size_t k) const {
    if (length(i) != length(k))
      refuse("arguments " + std::to_string(i + 1) + " and " + std::to_string(k + 1) + " have " +
             std::to_string(length(i)) + " and " + std::to_string(length(k)) + " elements, which should be equal");
  }

 private:
  void expect_single(std::size_t i) const {
    if (length(i) != 1) refuse("argument " + std::to_string(i + 1) + " is one value, not " + std::to_string(length(i)));
  }

  View checked(View x) const {
    if (x.var < 0) return solver_.fixed(x.offset);
    const Domains& d = solver_.domains();
    if (x.var >= d.count()) refuse("there is no variable " + std::to_string(x.var));
    const __int128 a = static_cast<__int128>(x.scale) * d.lo(x.var) + x.offset,
                   b = static_cast<__int128>(x.scale) * d.hi(x.var) + x.offset;
    if (x.scale == 0 || std::max(a, b) > kLimit || std::min(a, b) < -kLimit || std::abs(x.offset) > kLimit)
      refuse("a view is scale * x + offset with a scale other than 0, within 2^52");
    return x;
  }

  View checked_boolean(View x) const {
    if (solver_.domains().lo(x) < 0 || solver_.domains().hi(x) > 1) refuse("a Boolean is 0 or 1");
    return x;
  }

  Solver& solver_;
  const std::string& name_;
  const std::vector<Argument>& arguments_;
};

// Posts a Boolean for the order of each pair of the tasks, which run one after another. Posts nothing if there are too
// many tasks or if a task takes no time. All durations must be constants.
void post_task_orders(const ConstraintCall& call, const Views& starts, const Views& durations);
// Posts tasks that share a capacity. If no two of them fit together, each fits alone, and all durations and demands are
// fixed, the tasks are posted as running one after another, and the function returns true.
bool post_shared_resource(const ConstraintCall& call, const Views& starts, const Views& durations, const Views& demands,
                          View capacity);

#define ELIMINA_DECLARE(name, arguments, reifiable, post) void post(ConstraintCall& call);
ELIMINA_CONSTRAINT_ROWS(ELIMINA_DECLARE)
#undef ELIMINA_DECLARE

}  // namespace elimina::cp
