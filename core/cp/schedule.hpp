// Schedule of a search: orderings and a part of the tree for each stretch (the search between two restarts).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace elimina::cp {

struct Restarts {
  enum class Kind : std::uint8_t { none, constant, linear, geometric, luby };
  Kind kind = Kind::none;
  double scale = 100;   // failures of the shortest stretch
  double growth = 1.5;  // factor of geometric restarts

  double cutoff(std::uint64_t round) const;
};

// Part of the tree that a stretch covers. `tree`: all of it. `neighbourhood`: assignments near the incumbent (large
// neighbourhood search). `task_neighbourhood`: schedules near the incumbent. `target`: solutions with an objective of
// at most a target. Refuting a target gives a lower bound (destructive lower bounds, Klein and Scholl, 1999).
enum class Scope : std::uint8_t { tree, neighbourhood, task_neighbourhood, target };

// Rules by which a stretch chooses decisions. `model`: the model's own. `free`: dom/wdeg, beginning with the variable
// of the last conflict, and saved values. `costs`: the values' costs in a relaxation.
enum class Ordering : std::uint8_t { model, free, costs };

struct Row {
  Scope scope;
  Ordering ordering;
  double share;       // share of the work, counted in calls of propagators, so that runs are equal on all machines
  Restarts restarts;  // number of failures after which a stretch ends
  // The share shrinks after each stretch without a better solution or bound, down to this fraction of its first value;
  // a success restores it. The factor is 1 for rows whose stretches add up to a proof.
  double least_factor = 1;
};

// Rows that take turns, each for its share of the work. The first row of the list begins.
class Schedule {
 public:
  explicit Schedule(std::vector<Row> rows) : states_(rows.size()), rows_(std::move(rows)) {}

  const Row& row() const { return rows_[current_]; }
  bool has(Scope scope) const;
  bool has_free() const;
  // Failures after which the present stretch ends.
  double cutoff() const { return row().restarts.cutoff(states_[current_].stretches + 1); }
  // True if a stretch may end before its part of the tree has been searched completely.
  bool restarts() const;

  // Adds the work of the current stretch, and begins the next one with the row that is furthest behind its share, among
  // those accepted by `applies`. If there is none, the current row continues. `is_success`: true if the current stretch
  // has found a better solution or bound.
  template <class F>
  void advance(double work, bool is_success, F applies) {
    State& ended = states_[current_];
    ended.factor = is_success ? 1 : std::max(row().least_factor, ended.factor * kShrinkage);
    ended.load += work / (row().share * ended.factor);
    ++ended.stretches;
    std::size_t next = rows_.size();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!applies(rows_[i])) continue;
      // A row that did not apply for some time, such as neighbourhoods without an incumbent, does not catch up on its
      // share.
      if (states_[i].load < least_) states_[i].load = least_;
      if (next == rows_.size() || states_[i].load < states_[next].load) next = i;
    }
    if (next == rows_.size()) return;
    current_ = next;
    least_ = states_[next].load;
  }

 private:
  struct State {
    double load = 0;  // work over share
    double factor = 1;
    std::uint64_t stretches = 0;
  };
  static constexpr double kShrinkage = 0.8;  // factor of the share after each stretch without success

  std::vector<State> states_;
  std::vector<Row> rows_;
  std::size_t current_ = 0;
  double least_ = 0;
};

// `portfolio_rows`: returns the rows of the default search, which begins with the model's orderings if there are any.
// `forced_rows`: returns the rows of a search whose kind is set by options.
std::vector<Row> portfolio_rows(double scale, bool has_orderings);
std::vector<Row> forced_rows(const Restarts& restarts, bool free, bool relaxes);
// Returns the rows of one of several threads that search the same tree at first.
std::vector<Row> rows_of_thread(const std::vector<Row>& rows, std::size_t thread, std::size_t threads);

}  // namespace elimina::cp
