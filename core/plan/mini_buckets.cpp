#include "plan/mini_buckets.hpp"

#include <bit>
#include <numeric>

namespace elimina::plan {

std::vector<std::vector<int>> MiniBuckets::divide(std::span<const std::span<const int>> scopes, i64 most,
                                                  std::span<const int> weights) {
  const std::size_t words = number_locally(scopes, weights);
  const auto weigh = [&](u64 bits, std::size_t word) {
    if (weights.empty()) return i64(std::popcount(bits));
    i64 sum = 0;
    for (; bits; bits &= bits - 1) sum += weights_[word * 64 + std::countr_zero(bits)];
    return sum;
  };
  std::vector<u64> own(scopes.size() * words);
  std::vector<i64> sizes(scopes.size());
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    for (const int v : scopes[i]) own[i * words + local_[v] / 64] |= u64{1} << (local_[v] % 64);
    for (std::size_t w = 0; w < words; ++w) sizes[i] += weigh(own[i * words + w], w);
  }
  std::vector<int> sequence(scopes.size());
  std::iota(sequence.begin(), sequence.end(), 0);
  std::stable_sort(sequence.begin(), sequence.end(), [&](int a, int b) { return sizes[a] > sizes[b]; });
  std::vector<std::vector<int>> parts;
  std::vector<u64> unions;
  std::vector<i64> held;
  for (const int i : sequence) {
    const u64* mine = own.data() + i * words;
    i64 fewest = 0;
    int best = -1;
    for (std::size_t n = 0; n < parts.size(); ++n) {
      i64 more = 0;
      for (std::size_t w = 0; w < words; ++w)
        if (const u64 bits = mine[w] & ~unions[n * words + w]) more += weigh(bits, w);
      if ((!more || held[n] + more <= most) && (best < 0 || more < fewest)) best = int(n), fewest = more;
    }
    if (best < 0) {
      parts.push_back({i});
      unions.insert(unions.end(), mine, mine + words);
      held.push_back(sizes[i]);
    } else {
      parts[best].push_back(i);
      for (std::size_t w = 0; w < words; ++w) unions[best * words + w] |= mine[w];
      held[best] += fewest;
    }
  }
  for (auto& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

// Number the variables of a bucket from 0 on; return the words that bits for them take.
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
