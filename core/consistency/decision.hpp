// A decision of a search.
#pragma once
#include "network.hpp"

namespace elimina::consistency {

// Relation of a variable to the value: equal, different, at most, or above.
enum class Rule : char { is, is_not, up_to, beyond };

struct Decision {
  Var var;
  int value;
  Rule rule;

  Decision opposite() const {
    constexpr Rule opposites[] = {Rule::is_not, Rule::is, Rule::beyond, Rule::up_to};
    return {var, value, opposites[static_cast<int>(rule)]};
  }

  bool allows(int x) const {
    switch (rule) {
      case Rule::is: return x == value;
      case Rule::is_not: return x != value;
      case Rule::up_to: return x <= value;
      default: return x > value;
    }
  }
};

}  // namespace elimina::consistency
