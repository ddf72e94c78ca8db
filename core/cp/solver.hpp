// A model to be solved: variables, and constraints by name. There are no globals: a process may have many.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "constraints.hpp"
#include "device/batch.hpp"

namespace elimina::cp {

// An argument of a constraint: views; a constant is one with the variable -1, and its offset is its value.
using Argument = Views;

inline View constant(Value value) { return {-1, 0, value}; }

class Solver {
 public:
  Engine& engine() { return engine_; }
  const Domains& domains() const { return engine_.domains(); }
  int variables() const { return engine_.domains().count(); }

  View new_variable(Value lo, Value hi) { return {engine_.new_variable(lo, hi)}; }
  View new_variable(const Values& values);

  // A view of a variable that has this value; one variable for each value.
  View fixed(Value value);

  // A constraint by its name (`constraint_names`), with FlatZinc's arguments. `NAME_reif` and `NAME_imp` take a Boolean more
  // where it exists. The argument of a set is its values. Throws `Refused`.
  void post(const std::string& name, const std::vector<Argument>& arguments);

  // Whether it is worth to look for a device: an AllDifferent asks for one, or is large enough.
  bool wants_device();

  // From now on a device filters AllDifferents; `measures`: where it is the faster one, or is asked for; otherwise all that it can.
  // Once, at the root, after all is posted.
  void accelerate(std::unique_ptr<FilterDevice> device, bool measures);
  const DeviceBatch* batch() const { return batch_.get(); }

 private:
  Engine engine_;
  std::unique_ptr<DeviceBatch> batch_;
  std::map<Value, View> fixed_;
};

// All names, without suffixes.
std::vector<std::string> constraint_names();

}  // namespace elimina::cp
