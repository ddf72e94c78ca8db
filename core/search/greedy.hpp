// Builds solutions that take the value of least bound at each variable, as mini-buckets are decoded.
#pragma once
#include <random>

#include "cache.hpp"
#include "path.hpp"
#include "problem.hpp"

namespace elimina::search {

class Greedy {
 public:
  Greedy(const Problem& problem, const Cache& cache, std::uint64_t seed);

  // Gives each variable, ancestors first, the value with the least bound, including the cached bounds of its children.
  // Bounds are raised at random, by `noise` on average.
  std::vector<int> run(double noise);

 private:
  int pick(Var v, double noise);
  double look_ahead(Var v, int x);

  const Problem& problem_;
  const Cache& cache_;
  Path path_;
  std::mt19937_64 random_;
  std::vector<double> cost_, bound_, first_bound_;
  std::vector<char> raised_;
  std::vector<Cache::Word> key_;
};

}  // namespace elimina::search
