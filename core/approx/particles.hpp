// A particle filter: samples of which those with little weight make room for copies of the others, while further variables are drawn.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::approx {

// Numbers of variables are drawn from the highest on. A row holds the states that the samples have of one number.
class Particles {
 public:
  // `max_samples`: of a group. `last_uses`: of each number, the lowest bucket that reads its states; one that is not read later has itself.
  Particles(std::span<const i64> last_uses, i64 max_samples)
      : last_uses_(last_uses), shares_(std::size_t(max_samples)) {}

  // Begins a group: the first row's states, the states from a row to the next, and natural logarithms of the weights.
  void begin(std::int32_t* states, i64 row, std::span<double> logs);

  // Tells that a number was drawn.
  void add(i64 number) { read_.push_back(number); }
  // Resamples if few samples have most of the weight: then all have the same one. `point`: a random number from 0 on and below 1.
  void resample_if_uneven(i64 number, double point);
  // Gives each sample the states of those that it goes back to, and its whole weight. Returns the number of independent samples that say as much about
  // the first numbers.
  double finish();

 private:
  // Shares of the weight go to `shares_`. Returns the number of samples of even weight that are worth as much; 0 if all weights are 0.
  double share_out();
  std::int32_t* row_of(i64 number) { return states_ + number * row_; }

  std::span<const i64> last_uses_;
  std::int32_t* states_ = nullptr;
  i64 row_ = 0;
  std::span<double> logs_;  // of weights since the last resampling
  double log_mean_ = 0;     // of the weights before
  double log_sum_ = 0;      // of the weights whose shares were taken last
  std::vector<double> shares_;
  std::vector<i64> read_;                           // numbers that buckets may still read: their rows are up to date
  std::vector<std::vector<std::int32_t>> origins_;  // of each resampling: the sample that each was
  std::vector<std::vector<i64>> unread_;            // the numbers that were not read any more at that time
  std::vector<std::int32_t> states_before_, origin_;
};

}  // namespace elimina::approx
