// Steps of a tree: one for each bucket, and joins where they are cheaper than one wide aggregation.
#pragma once
#include <array>

#include "plan/tile.hpp"
#include "plan/tree.hpp"
#include "stop.hpp"

namespace elimina::plan {

constexpr int kMostTables = 16;  // largest number of tables that one step reads

// A table to be read: a factor (source -1) or an earlier step's output.
struct Read {
  int source;
  int scope;  // number in Steps::scopes; a factor has the number of its scope
  int factor() const { return source < 0 ? scope : -1; }
  bool operator==(const Read&) const = default;
};

// A step before memory is laid out. Tables are read in the sequence lhs, rhs, streamed.
struct Step {
  int variable;  // the eliminated variable, or kJoin or kMatching (elimina/program.hpp)
  // Index in `Steps::axes` of the step's list of axes (first slow, then middle, then fast ones); -1: the axes are the
  // scope's variables in their order.
  int axes;
  i64 domain;      // product of the numbers of values of all eliminated variables
  int scope;       // number in Steps::scopes of the output's scope, slow to fast
  int outer, mid;  // number of slow axes, and of middle axes
  int tables_a, tables_b;
  int rows;  // position of the first axis of the output's rows; -1: where `row_axes` puts it
  double weight;
};

// A part of the answer. `step`: the step that computes this part. `variable`: the variable of the marginal, or the
// first variable of a family for its joint marginal; -1: a factor of the answer.
struct Output {
  int step, variable;
};

// Positions 0, 1, 2 ...: the sequence of most steps' axes.
constexpr auto kPositions = [] {
  std::array<int, 64> positions{};
  for (int n = 0; n < int(positions.size()); ++n) positions[n] = n;
  return positions;
}();

struct Steps {
  std::vector<Step> steps;
  Lists scopes;             // scopes of the factors, by their numbers, and of the outputs
  std::vector<Read> reads;  // tables that the steps read, one step after another
  std::vector<i64> first;   // start of each step's reads, and the end of the last step's
  Lists axes;               // lists of positions in the output's scope
  Lists others;             // further variables of steps that eliminate several; the list ends with the last such step
  std::vector<Output> outputs;
  std::vector<char> lasting;  // for each step, true if the memory of its output is never reused
  int most_tables = 0;

  std::span<const Read> reads_of(i64 step) const {
    return {reads.data() + first[step], reads.data() + first[step + 1]};
  }
  std::span<const int> axes_of(i64 step) const {
    if (steps[step].axes >= 0) return axes[steps[step].axes];
    return {kPositions.data(), scopes[steps[step].scope].size()};
  }
  std::span<const int> others_of(i64 step) const {
    return step < others.size() ? others[step] : std::span<const int>();
  }
  void append_others(i64 step, std::span<const int> list) {
    if (list.empty()) return;
    while (others.size() < step) others.close();
    others.append(list);
  }
  // Returns the same steps in another sequence, in which every message is still written before it is read.
  Steps moved(std::span<const int> sequence) const;
};

// Limits on steps.
struct StepRules {
  int tables;  // largest number of tables that a step reads
  // True if steps without streamed tables are matrix products (elimina/product.hpp), for which even small buckets join
  // the tables of each side.
  bool products = false;
  bool fused = false;  // buckets may be eliminated together with their parents' (plan/fusion.hpp)
  // False if the caller splits the axes when it packs the steps: until then, the steps have no axes and no groups of
  // tables.
  bool is_split = true;
};

// Builder of steps: each operation appends its steps to those that are made so far.
class Writer {
 public:
  // `sizes`: sizes of the model's variables. `scopes`: scopes of the factors, sorted by position in the tree.
  Writer(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules);

  Steps& made() { return made_; }
  const Steps& made() const { return made_; }
  int scope(std::span<const int> variables);
  std::span<const int> scope_of(const Read& read) const { return made_.scopes[read.scope]; }
  bool has(const Read& read, int variable) const {
    const auto scope = scope_of(read);
    return std::find(scope.begin(), scope.end(), variable) != scope.end();
  }
  void add_factors(int number, std::vector<Read>& reads) const {
    for (const int f : tree_.factors[number]) reads.push_back({-1, f});
  }
  i64 cells(std::span<const int> scope) const { return cells_of(scope, sizes_); }
  i64 size(int variable) const { return variable < 0 ? 1 : sizes_[variable]; }
  int position(int variable) const { return tree_.position[variable]; }
  // Returns all variables of the tables except `without` (-1: none), by position.
  std::vector<int> variables_of_all(std::span<const Read> reads, int without = -1);
  // Adds a scope with all variables of the tables except `without`; returns its number.
  int scope_of_all(std::span<const Read> reads, int without = -1);

  // Appends the steps that eliminate a variable from the tables `reads`; returns the message over a scope. Joins
  // replace tables in `reads`. `variable`: kJoin for a join.
  Read eliminate(int variable, int scope, std::vector<Read>& reads, double weight = 1);
  // Appends a step that eliminates several variables, the earliest first; the number of tables must be within the limit
  // of a step.
  Read eliminate_all(std::span<const int> variables, int scope, std::vector<Read> reads);
  // Appends the steps that eliminate all variables of a bucket except `axes`, the earliest first.
  Read project(int variable, std::span<const int> separator, std::vector<Read> reads, const std::vector<int>& axes,
               double weight);
  // Appends the moment matching of mini-buckets; returns a table for each, over the scope of their marginals.
  // `weights`: share of each mini-bucket in the mean.
  std::vector<Read> match(const std::vector<Read>& marginals, std::span<const double> weights);

 private:
  struct Bucket;
  void collect(std::span<const Read> reads, int without, std::vector<int>& variables);
  int add(const Bucket& bucket, std::span<const Read> reads);
  int add(const Bucket& bucket, std::span<const Read> reads, const Tile& tile, int rows);
  int add_axes(const Tile& tile);
  void shape(i64 domain, int scope, std::span<const Read> reads);
  Tile tile(i64 domain, int scope, std::span<const Read> reads, int rows = -1);
  void join(std::vector<Read>& reads, const std::vector<Read>& chosen, int scope = -1, int rows = -1);
  void limit_tables(const Bucket& bucket, std::vector<Read>& reads);
  void join_equal(std::vector<Read>& reads);
  void join_smallest(std::vector<Read>& reads);
  Tile join_streamed(const Bucket& bucket, std::vector<Read>& reads);
  void pack_sides(const Bucket& bucket, std::vector<Read>& reads, const Tile& tile);
  void pack(const Bucket& bucket, std::vector<Read>& reads, const std::vector<Read>& tables,
            const std::vector<int>& kept, const std::vector<int>& cells);
  bool is_cheap(const Bucket& bucket, const std::vector<int>& key, const std::vector<int>& cells, i64 gain) const;
  bool is_packed(const Bucket& bucket, const Read& read, const std::vector<int>& key,
                 const std::vector<int>& cells) const;
  i64 cells_together(const Read& first, const Read& other);

  const Tree& tree_;
  std::span<const i64> sizes_;
  std::size_t tables_;
  bool products_, is_split_;
  Steps made_;
  Looks looks_;
  Marks marks_;
  std::vector<int> axis_;  // axis of each marked variable
  StepShape shape_;
};

// Returns the steps of the pass towards the roots. `sequence`: all nodes, children before parents. `matched`:
// mini-buckets of a variable, which must be neighbours in `sequence`, get moment matching before they are eliminated.
// `weights`: weight of each node's elimination; empty: 1. `stays`: messages stay after their last reader.
Steps upward_steps(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, std::span<const int> sequence,
                   StepRules rules, bool matched, std::span<const double> weights, bool stays);

// Returns the steps of both passes (Shafer and Shenoy 1990), as far as the marginals of the wanted variables and the
// joint marginals of the families need them. A family must lie in the scope of a table.
Steps both_passes(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules,
                  std::span<const int> wanted, const Lists& families = {});
// Returns the steps of the pass towards the roots and of the join of its results: the joint distribution of the kept
// variables.
Steps joint_steps(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules);

// Bounds with which steps on tuples prune (bounds.cpp). For each node, the tables that bound its message from below,
// and those that bound the cost outside its subtree: a factor is listed by its number, a message as -1 minus the number
// of its step.
struct RowBounds {
  Steps steps;
  Lists upward, rest;
};
// Plans the bounds of a tree. `cells`: largest number of cells of a mini-bucket, unless one of its tables has more.
RowBounds row_bounds(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, int tables, i64 cells);

}  // namespace elimina::plan
