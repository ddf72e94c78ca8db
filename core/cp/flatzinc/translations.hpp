// Translations of constraints from MiniZinc's library and other solvers to this solver's names and arguments, or to
// several constraints.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cp/solver.hpp"

namespace elimina::cp::flatzinc {

// A constraint of the file, and the sink to post it to.
class Translation {
 public:
  Translation(Sink& sink, std::vector<Argument> arguments, std::string consistency, std::string side)
      : sink_(sink), arguments_(std::move(arguments)), consistency_(std::move(consistency)), side_(std::move(side)) {}

  // Suffixes of names: consistency of an all_different, and where to filter a circuit.
  const std::string& consistency() const { return consistency_; }
  const std::string& side() const { return side_; }

  void expect(std::size_t count) const;
  const Argument& list(std::size_t i) const { return arguments_[i]; }
  View view(std::size_t i) const;
  Value value(std::size_t i) const;
  Argument shifted(std::size_t i, Value by) const;

  void post(const std::string& name, const std::vector<Argument>& arguments) const { sink_.post(name, arguments); }
  View boolean() const { return sink_.new_variable(0, 1); }
  View integer(Value lo, Value hi) const { return sink_.new_variable(lo, hi); }
  // A Boolean that is 1 exactly if a constraint with a reified form holds.
  View truth(const std::string& name, std::vector<Argument> arguments) const;

 private:
  Sink& sink_;
  std::vector<Argument> arguments_;
  std::string consistency_, side_;
};

using Translate = void (*)(const Translation&);

// The translation of a name; nullptr if the name is not translated.
Translate translation_of(std::string_view name);
// All translated names.
std::vector<std::string> translated_names();

}  // namespace elimina::cp::flatzinc
