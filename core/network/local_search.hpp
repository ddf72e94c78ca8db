// Local search over cost functions: tabu moves, and neighbourhoods that elimination solves. When it is stuck, forbidden
// cells get more weight.
#pragma once
#include <optional>
#include <random>
#include <vector>

#include "network/neighbourhood.hpp"
#include "network/view.hpp"

namespace elimina::network {

class LocalSearch {
 public:
  LocalSearch(View view, std::uint64_t seed);

  // Begins a search at an assignment, which may have forbidden cells.
  void start(const std::vector<int>& value);

  // Gives each variable in turn its best value, until no value changes or the limit on visited cells is reached. If the
  // assignment then still has forbidden cells, these get more weight, and the descent goes on; this is repeated a few
  // times.
  void descend(std::uint64_t cells);

  // Makes tabu moves until the limit on visited cells is reached, or a stop is requested. Returns true if a solution
  // better than all earlier ones was found.
  bool run(std::uint64_t cells);

  // Solves neighbourhoods of the best solution by elimination, larger ones if none improves it, until the limit on
  // visited cells is reached, or a stop is requested. Returns true if a better solution was found.
  bool explore(std::uint64_t cells);

  // Draws moves from another random sequence.
  void reseed(std::uint64_t seed) { random_.seed(seed); }

  const std::vector<int>& best() const { return best_; }
  double cost() const { return best_cost_; }  // cost of the best solution
  Var count() const { return static_cast<Var>(sizes_.size()); }

 private:
  struct Incidence {
    int factor;
    std::int64_t stride;
  };
  struct Factor {
    View::Function function;
    std::int64_t at;  // cell of the current values
    double penalty;   // penalty of a forbidden cell
    bool broken;      // true if the current cell is forbidden
  };

  void measure(const Factor& factor, double sign);
  void set(Var v, int x);
  bool keep_if_better();
  void move();
  void stuck();
  void reweigh();
  void return_to_best();
  bool solve(const Neighbourhood& neighbourhood);
  double* gain(Var v) { return gain_.data() + first_[v]; }

  Numbers numbers_;
  std::vector<int> sizes_;
  std::mt19937_64 random_;
  std::vector<Factor> factors_;
  std::vector<std::vector<Incidence>> touching_;
  std::vector<std::size_t> first_;
  std::vector<int> owner_;  // variable of each value
  // For each value, the cost of its variable's functions with this value, all other variables unchanged.
  std::vector<double> gain_;
  std::vector<std::uint64_t> until_;  // step until which a value is tabu
  std::vector<int> value_, best_;
  double first_penalty_ = 1, total_ = 0, best_cost_ = infinite;
  int broken_ = 0;
  std::uint64_t step_ = 0, cells_ = 0, improved_ = 0;
  std::optional<Neighbourhoods> neighbourhoods_;
  // Level of the size of neighbourhoods, and number of neighbourhoods tried at this level without improvement.
  int level_ = 0, failures_ = 0;
};

}  // namespace elimina::network
