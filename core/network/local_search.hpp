// Local search over cost functions: tabu moves, and neighbourhoods that elimination solves. It gives forbidden cells more weight wherever it
// gets stuck.
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

  // Go on from a solution, or anything else.
  void start(const std::vector<int>& value);

  // Give each variable in turn its best value, until none changes or so many cells were visited. Where forbidden cells are left then, they
  // get more weight, a few times.
  void descend(std::uint64_t cells);

  // Move until so many cells were visited, or the thread is to stop. Whether a better solution than the start or any since was found.
  bool run(std::uint64_t cells);

  // Solve neighbourhoods of the best solution by elimination, larger ones where none improves it, until so many cells were visited, or the
  // thread is to stop. Whether a better solution was found.
  bool explore(std::uint64_t cells);

  // Moves are drawn from another sequence.
  void reseed(std::uint64_t seed) { random_.seed(seed); }

  const std::vector<int>& best() const { return best_; }
  double cost() const { return best_cost_; }  // of the best solution
  Var count() const { return static_cast<Var>(sizes_.size()); }

 private:
  struct Place {
    int factor;
    std::int64_t stride;
  };
  struct Factor {
    View::Function function;
    std::int64_t at;  // the cell of the present values
    double penalty;   // of a forbidden cell
    bool broken;      // the present cell is forbidden
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
  std::vector<std::vector<Place>> touching_;
  std::vector<std::size_t> first_;
  std::vector<int> owner_;    // of each value, its variable
  std::vector<double> gain_;  // what the factors of each value's variable would cost with it, the others as they are
  std::vector<std::uint64_t> until_;  // the step before which a value is tabu
  std::vector<int> value_, best_;
  double first_penalty_ = 1, total_ = 0, best_cost_ = infinite;
  int broken_ = 0;
  std::uint64_t step_ = 0, cells_ = 0, improved_ = 0;
  std::optional<Neighbourhoods> neighbourhoods_;
  int level_ = 0, failures_ = 0;  // the size of neighbourhoods, and those of this size that did not improve
};

}  // namespace elimina::network
