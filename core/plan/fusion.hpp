// Fuses buckets with their parents' buckets: one step eliminates the variables of both, so that the message between
// them is neither written nor read.
#pragma once
#include <unordered_map>

#include "plan/steps.hpp"

namespace elimina::plan {

// True if the first variables of a table's scope are `variables`, and one stride of the table leads through all
// combinations of their values.
bool is_spread(std::span<const int> scope, std::span<const int> variables, std::span<const i64> sizes);

// Buckets that wait to be fused with their parents' buckets, in a tree without mini-buckets.
class Fusion {
 public:
  Fusion(const Tree& tree, std::span<const i64> sizes, int tables)
      : tree_(tree), sizes_(sizes), tables_(std::size_t(tables)) {}

  // True if a node's bucket with these tables is cheaper to eliminate together with its parent's bucket.
  bool pays(int number, const std::vector<Read>& reads, const Lists& scopes) const;
  void wait(int number, std::vector<Read> reads);
  // True if the node's bucket waits for its parent's bucket.
  bool waits(int number) const;
  // Takes the tables of the buckets that wait for a node's bucket; returns no tables if no bucket waits.
  std::vector<Read> remove(int number);
  // Variables of the buckets that waited for a node's bucket, and its own.
  std::vector<int> variables(int number) const;

 private:
  struct Waiting {
    int node;
    std::vector<int> variables;
    std::vector<Read> reads;
  };

  const Tree& tree_;
  std::span<const i64> sizes_;
  std::size_t tables_;
  std::unordered_map<int, Waiting> waiting_;  // waiting buckets by parent
};

}  // namespace elimina::plan
