// A model to be solved: variables, and constraints by name. There is no global state: a process may hold many models.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "constraints.hpp"
#include "device/batch.hpp"
#include "task_neighbourhood.hpp"
#include "task_orders.hpp"

namespace elimina::cp {

// An argument of a constraint: views. A constant is a view of variable -1 with its value as offset.
using Argument = Views;

inline View constant(Value value) { return {-1, 0, value}; }

// Receiver of a front end's variables and constraints: a solver, or a record of them.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual int variables() const = 0;
  virtual View new_variable(Value lo, Value hi) = 0;
  // Returns a view of a variable that is fixed to this value; equal values share a variable.
  virtual View fixed(Value value) = 0;
  // Posts a constraint by its name (`constraint_names`), with FlatZinc's arguments. `NAME_reif` and `NAME_imp`, where
  // they exist, take a further Boolean. A set is given by its values. Throws `Refused` for unknown names and unfit
  // arguments.
  virtual void post(const std::string& name, const std::vector<Argument>& arguments) = 0;
};

class Solver final : public Sink {
 public:
  Engine& engine() { return engine_; }
  const Domains& domains() const { return engine_.domains(); }
  int variables() const override { return engine_.domains().count(); }

  View new_variable(Value lo, Value hi) override { return {engine_.new_variable(lo, hi)}; }
  View new_variable(const Values& values);
  View fixed(Value value) override;
  void post(const std::string& name, const std::vector<Argument>& arguments) override;

  // Adds a pair of tasks with a Boolean for their order: searches decide these Booleans before the starts.
  void add_order(const TaskOrder& order) { orders_.push_back(order); }
  const std::vector<TaskOrder>& orders() const { return orders_; }
  // The constraint before + distance <= after on two variables.
  struct Difference {
    int before;
    Value distance;
    int after;
  };
  const std::vector<Difference>& differences() const { return differences_; }

  // Adds tasks that share a capacity. A neighbourhood of tasks keeps the order of those that it does not release.
  void add_tasks(TaskGroup group) { task_groups_.push_back(std::move(group)); }
  const std::vector<TaskGroup>& task_groups() const { return task_groups_; }

  // Returns the number of seconds of search after which to look for a device: 0 if an AllDifferent requests a device, a
  // few if an AllDifferent is large, otherwise infinity.
  double device_delay();

  // Lets a device filter AllDifferents. With `measures`, it filters those where it is faster by measurement, and those
  // that request it. Without, it filters all that it can. Call it once, after all constraints are posted.
  void accelerate(std::unique_ptr<FilterDevice> device, bool measures);
  // Calls `accelerate` with `measures` and the device found, once a search has lasted long enough. `find` is called
  // again while it returns nullopt; it returns nullptr if there is no device.
  using FindDevice = std::function<std::optional<std::unique_ptr<FilterDevice>>()>;
  void accelerate_later(FindDevice find) { find_ = std::move(find); }
  void has_searched(double seconds);
  const DeviceBatch* batch() const { return batch_.get(); }

 private:
  void note_difference(const std::vector<Argument>& arguments);

  Engine engine_;
  std::unique_ptr<DeviceBatch> batch_;
  FindDevice find_;
  double next_look_ = 0;
  std::map<Value, View> fixed_;
  std::vector<TaskOrder> orders_;
  std::vector<TaskGroup> task_groups_;
  std::vector<Difference> differences_;
};

// Returns all names of constraints, without suffixes.
std::vector<std::string> constraint_names();
// Refuses an unknown name of a constraint, and a wrong number of its arguments.
void check_constraint(const std::string& name, std::size_t arguments);

}  // namespace elimina::cp
