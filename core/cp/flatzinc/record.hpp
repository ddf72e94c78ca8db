// Record of the variables and constraints of an instance, from which a front end can build another model.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "cp/implied_bounds.hpp"

namespace elimina::cp::flatzinc {

class Record final : public Sink {
 public:
  int variables() const override { return static_cast<int>(bounds.size()); }
  View new_variable(Value lo, Value hi) override {
    bounds.emplace_back(lo, hi);
    return {variables() - 1};
  }
  View fixed(Value value) override { return constant(value); }
  void post(const std::string& name, const std::vector<Argument>& arguments) override {
    posts.push_back({name, arguments});
  }

  std::vector<std::pair<Value, Value>> bounds;
  std::vector<Statement> posts;
};

}  // namespace elimina::cp::flatzinc
