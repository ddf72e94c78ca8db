// Solutions along the least bounds: the decoding of mini-buckets.
#pragma once
#include "cache.hpp"
#include "path.hpp"
#include "problem.hpp"

namespace elimina::search {

class Greedy {
 public:
  explicit Greedy(const Problem& problem, const Cache* cache = nullptr);

  // Gives each variable, ancestors first, the value of the least bound, which what the cache knows of the children raises.
  std::vector<int> run();

 private:
  int pick(Var v);
  double look_ahead(Var v, int x);

  const Problem& problem_;
  const Cache* cache_;
  Path path_;
  std::vector<double> cost_, bound_;
  std::vector<char> raised_;
  std::vector<Cache::Word> key_;
};

}  // namespace elimina::search
