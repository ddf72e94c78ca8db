#include "greedy.hpp"

#include <algorithm>
#include <cmath>

namespace elimina::search {

Greedy::Greedy(const Problem& problem, const Cache& cache, std::uint64_t seed)
    : problem_(problem), cache_(cache), path_(problem), random_(seed), key_(cache.words()) {
  const auto largest_domain = static_cast<std::size_t>(*std::max_element(problem.size.begin(), problem.size.end()));
  cost_.resize(largest_domain);
  bound_.resize(largest_domain);
  first_bound_.resize(largest_domain);
  raised_.resize(largest_domain);
}

std::vector<int> Greedy::run(double noise) {
  for (const Var v : problem_.preorder) path_.assign(v, pick(v, noise));
  return {path_.value().begin(), path_.value().end() - 1};
}

int Greedy::pick(Var v, double noise) {
  const int count = problem_.size[v];
  // Distributions of the standard library differ between implementations; this one gives the same numbers everywhere.
  const auto unit = [](std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; };
  path_.expand(v, cost_.data(), bound_.data());
  std::copy_n(bound_.begin(), count, first_bound_.begin());
  if (noise > 0)
    for (int x = 0; x < count; ++x) bound_[x] -= noise * std::log1p(-unit(random_));
  std::fill_n(raised_.begin(), count, false);
  while (true) {
    const int x = static_cast<int>(std::min_element(bound_.begin(), bound_.begin() + count) - bound_.begin());
    if (raised_[x]) return x;
    raised_[x] = true;
    bound_[x] += std::max(0.0, look_ahead(v, x) - first_bound_[x]);
  }
}

double Greedy::look_ahead(Var v, int x) {
  path_.assign(v, x);
  double sum = cost_[x];
  for (const Var c : problem_.children[v]) {
    double lower = path_.below(c);
    Cache::Entry entry;
    if (!problem_.children[c].empty()) {
      cache_.pack(c, path_.value(), key_.data());
      if (cache_.find(key_.data(), entry)) lower = std::max(lower, entry.lower);
    }
    sum += lower;
  }
  return sum;
}

}  // namespace elimina::search
