#include "plan/mini_buckets.hpp"

#include <bit>
#include <numeric>

namespace elimina::plan {

std::vector<std::vector<int>> MiniBuckets::divide(std::span<const std::span<const int>> scopes, i64 max_weight,
                                                  std::span<const int> weights) {
  const std::size_t words = number_locally(scopes, weights);
  const auto weigh = [&](u64 bits, std::size_t word) {
    if (weights.empty()) return i64(std::popcount(bits));
    i64 sum = 0;
    for (; bits; bits &= bits - 1) sum += weights_[word * 64 + std::countr_zero(bits)];
    return sum;
  };
  std::vector<u64> sets(scopes.size() * words);
  std::vector<i64> sizes(scopes.size());
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    for (const int v : scopes[i]) sets[i * words + local_[v] / 64] |= u64{1} << (local_[v] % 64);
    for (std::size_t w = 0; w < words; ++w) sizes[i] += weigh(sets[i * words + w], w);
  }
  std::vector<int> sequence(scopes.size());
  std::iota(sequence.begin(), sequence.end(), 0);
  std::stable_sort(sequence.begin(), sequence.end(), [&](int a, int b) { return sizes[a] > sizes[b]; });
  std::vector<std::vector<int>> mini_buckets;
  std::vector<u64> unions;
  std::vector<i64> total_weights;
  for (const int i : sequence) {
    const u64* set = sets.data() + i * words;
    i64 least_added_weight = 0;
    int best = -1;
    for (std::size_t n = 0; n < mini_buckets.size(); ++n) {
      i64 added_weight = 0;
      for (std::size_t w = 0; w < words; ++w)
        if (const u64 bits = set[w] & ~unions[n * words + w]) added_weight += weigh(bits, w);
      if ((!added_weight || total_weights[n] + added_weight <= max_weight) &&
          (best < 0 || added_weight < least_added_weight))
        best = int(n), least_added_weight = added_weight;
    }
    if (best < 0) {
      mini_buckets.push_back({i});
      unions.insert(unions.end(), set, set + words);
      total_weights.push_back(sizes[i]);
    } else {
      mini_buckets[best].push_back(i);
      for (std::size_t w = 0; w < words; ++w) unions[best * words + w] |= set[w];
      total_weights[best] += least_added_weight;
    }
  }
  for (auto& mini_bucket : mini_buckets) std::sort(mini_bucket.begin(), mini_bucket.end());
  return mini_buckets;
}

// Numbers the variables of a bucket from 0 on; returns the number of words of a bit set of them.
std::size_t MiniBuckets::number_locally(std::span<const std::span<const int>> scopes, std::span<const int> weights) {
  marks_.clear();
  weights_.clear();
  int count = 0;
  for (const auto& scope : scopes)
    for (const int v : scope) {
      if (v >= int(local_.size())) {
        local_.resize(v + 1);
        marks_.resize(v + 1);
      }
      if (!marks_.add(v)) continue;
      local_[v] = count++;
      if (!weights.empty()) weights_.push_back(weights[v]);
    }
  return std::size_t(count + 63) / 64;
}

}  // namespace elimina::plan
