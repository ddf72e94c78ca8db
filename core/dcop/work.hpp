// Work and messages of eliminating the variables of a pseudo-tree exactly, with integer costs: known before anything is eliminated.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "dcop/traversal.hpp"
#include "plan/tree.hpp"
#include "tables/tables.hpp"

namespace elimina::dcop {

struct NumberType {
  i64 largest, bytes;
};

// Agents' choice of numbers, and of what is joined as one array.
struct Rules {
  std::vector<NumberType> types;  // the narrowest first; buckets of the last one are planned
  i64 tables;                     // that a step adds at most
  i64 spread;                     // costs of a variable's own functions are less far apart
  i64 at_once, cell;  // combinations up to which others are joined as one array, and the bytes of each of these
};

struct Elimination {
  int variable = 0;
  int tables = 0, type = 0;         // functions of one scope count once, and messages; type of the message's numbers
  int width = 0;                    // variables of the message
  i64 combinations = 1, cells = 1;  // of the variable and the message's, and of the message's alone
  i64 size = 0, held = 0;           // bytes of the message's cells, and of the children's
  i64 operations = -1, bytes = -1;  // of the largest step, without what is held; -1: a plan tells
};

class Work {
 public:
  // Nothing where a table forbids everything, or costs are so far apart that no numbers are wide enough. `functions`: of integers, with the scopes of
  // `planned` where they have variables.
  static std::optional<Work> of(const plan::PlannedTree& planned, const tables::Tables& functions, tables::Sense sense,
                                const Rules& rules);

  // Figures of all nodes.
  struct Total {
    i64 most_combinations = 0;  // of a node
    double combinations = 0;    // the sum of these
    i64 cells = 1;              // of the largest message
    i64 operations = 0;         // the sum
    i64 bytes = 0;              // of the largest step, with what is held
    int type = -1;              // the widest; -1: there is no table
  };
  Total total() const;

  std::vector<Elimination> nodes;  // of the tree
};

// Bytes of a message besides its cells: a number, and as many for each of its variables.
struct Envelope {
  i64 fixed, each;
  i64 around(int variables) const { return fixed + each * variables; }
};

// Messages between agents of both passes.
struct Mail {
  i64 messages = 0, util = 0, value = 0,
      largest = 0;  // messages of each pass, their bytes, and those of the largest one
};
Mail mail(const Work& work, std::span<Traversal* const> traversals, std::span<const int> owners, Envelope util,
          Envelope value);

}  // namespace elimina::dcop
