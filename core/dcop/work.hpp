// Computes in advance the work and the messages of an exact elimination along a pseudo-tree, with integer costs.
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

// The agents' rules for choosing number types, and for joining tables as one array.
struct Rules {
  std::vector<NumberType> types;  // the narrowest first; buckets of the last type are joined by a plan
  i64 tables;                     // largest number of tables that one step adds up
  i64 spread;         // limit on the spread (sum of largest minus least costs) of a variable's own functions
  i64 at_once, cell;  // largest number of combinations that are joined as one array, and bytes of each combination
};

struct Elimination {
  int variable = 0;
  int tables = 0, type = 0;  // number of tables (functions of one scope count once); type of the message's numbers
  int width = 0;             // number of variables of the message
  i64 combinations = 1, cells = 1;  // combinations with the variable, and cells of the message
  i64 size = 0, held = 0;           // bytes of the message's cells, and of the children's cells
  i64 operations = -1, bytes = -1;  // operations and bytes of the largest step without its inputs; -1: a plan has them
};

class Work {
 public:
  // Computes the work; returns nullopt if a table forbids everything, or if no type is wide enough for the costs.
  // `functions`: integer functions; those with variables are the factors of `planned`, in the same order.
  static std::optional<Work> of(const plan::PlannedTree& planned, const tables::Tables& functions, tables::Sense sense,
                                const Rules& rules);

  // Figures of all nodes.
  struct Total {
    i64 most_combinations = 0;  // combinations of the largest node
    double combinations = 0;    // sum of the combinations of all nodes
    i64 cells = 1;              // cells of the largest message
    i64 operations = 0;         // sum of the operations of all nodes
    i64 bytes = 0;              // bytes of the largest step, inputs included
    int type = -1;              // the widest type; -1: no tables
  };
  Total total() const;

  std::vector<Elimination> nodes;  // eliminations of all nodes of the tree
};

// Bytes of a message without its cells: a constant number (`fixed`), plus `each` for each of its variables.
struct Envelope {
  i64 fixed, each;
  i64 around(int variables) const { return fixed + each * variables; }
};

// Figures of the messages between agents in both passes.
struct Mail {
  // Number of messages of each pass, bytes of all UTIL and of all VALUE messages, and bytes of the largest message.
  i64 messages = 0, util = 0, value = 0, largest = 0;
};
Mail mail(const Work& work, std::span<Traversal* const> traversals, std::span<const int> owners, Envelope util,
          Envelope value);

}  // namespace elimina::dcop
