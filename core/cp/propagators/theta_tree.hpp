// Theta trees: earliest completion of a set of tasks that run one after another, alone or with one task of a second set
// (Vilim, PhD thesis 2007, chapter 2).
#pragma once
#include <algorithm>
#include <bit>
#include <vector>

#include "cp/types.hpp"

namespace elimina::cp {

// A binary tree over the tasks in the order of their earliest starts.
class ThetaTree {
 public:
  // Completion of an empty set. It stays below all other completions even after durations, at most 2^56 in total, are
  // added.
  static constexpr Value kNever = -(Value{1} << 60);

  // Empties both sets.
  void reset(std::size_t tasks) {
    leaves_ = std::bit_ceil(std::max<std::size_t>(tasks, 1));
    nodes_.assign(2 * leaves_, Node{});
  }

  // Put a task into the set or into the second set, or remove it from both.
  void insert(std::size_t position, Value start, Value duration) {
    set(position, {duration, duration, start + duration, start + duration, kNone, kNone});
  }
  void insert_candidate(std::size_t position, Value start, Value duration) {
    const auto i = static_cast<std::int32_t>(position);
    set(position, {0, duration, kNever, start + duration, i, i});
  }
  void remove(std::size_t position) { set(position, {}); }
  bool has(std::size_t position) const { return nodes_[leaves_ + position].completion != kNever; }

  // `completion`: earliest completion of the set. `completion_with_candidate`: the largest earliest completion after
  // adding at most one task of the second set. `candidate`: this task.
  Value completion() const { return nodes_[1].completion; }
  Value completion_with_candidate() const { return nodes_[1].extended; }
  std::size_t candidate() const { return static_cast<std::size_t>(nodes_[1].extended_by); }

 private:
  static constexpr std::int32_t kNone = -1;

  struct Node {
    Value duration = 0, extended_duration = 0, completion = kNever, extended = kNever;
    std::int32_t duration_by = kNone, extended_by = kNone;
  };

  void set(std::size_t position, const Node& leaf) {
    std::size_t i = leaves_ + position;
    nodes_[i] = leaf;
    for (i /= 2; i > 0; i /= 2) nodes_[i] = joined(nodes_[2 * i], nodes_[2 * i + 1]);
  }

  static Node joined(const Node& a, const Node& b) {
    Node result;
    result.duration = a.duration + b.duration;
    result.completion = std::max(b.completion, a.completion + b.duration);
    result.extended_duration = a.extended_duration + b.duration;
    result.duration_by = a.duration_by;
    if (const Value other = a.duration + b.extended_duration; other > result.extended_duration) {
      result.extended_duration = other;
      result.duration_by = b.duration_by;
    }
    result.extended = b.extended;
    result.extended_by = b.extended_by;
    if (const Value other = a.extended + b.duration; other > result.extended) {
      result.extended = other;
      result.extended_by = a.extended_by;
    }
    if (const Value other = a.completion + b.extended_duration; other > result.extended) {
      result.extended = other;
      result.extended_by = b.duration_by;
    }
    return result;
  }

  std::size_t leaves_ = 1;
  std::vector<Node> nodes_{2};
};

}  // namespace elimina::cp
