// A particle filter: while variables are drawn, copies of samples with large weights replace samples with small ones.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::approx {

// A group of weighted samples. Variables are drawn from the highest number down. A row holds the samples' states of one
// variable.
class Particles {
 public:
  // `max_samples`: largest number of samples of a group. `last_uses`: for each variable, the lowest bucket that reads
  // its states, or the variable itself if no bucket does.
  Particles(std::span<const i64> last_uses, i64 max_samples)
      : last_uses_(last_uses), shares_(std::size_t(max_samples)) {}

  // Begins a group. `states`: the first row; `row`: distance between rows; `logs`: natural logarithms of the weights.
  void begin(std::int32_t* states, i64 row, std::span<double> logs);

  // Records that the variable with this number was drawn.
  void add(i64 number) { read_.push_back(number); }
  // Resamples if few samples have most of the weight; afterwards all weights are equal. `number`: the variable drawn
  // last; `point`: a random number of at least 0 and below 1.
  void resample_if_uneven(i64 number, double point);
  // Replaces each sample's states by those of its ancestors, and multiplies its weight by the mean weight of past
  // resamplings. Returns the effective number of independent samples for the variables drawn first.
  double finish();

 private:
  // Writes each sample's share of the weights to `shares_`. Returns the effective number of samples; 0 if all weights
  // are 0.
  double share_out();
  std::int32_t* row_of(i64 number) { return states_ + number * row_; }

  std::span<const i64> last_uses_;
  std::int32_t* states_ = nullptr;
  i64 row_ = 0;
  std::span<double> logs_;  // logarithms of the weights since the last resampling
  double log_mean_ = 0;     // logarithm of the mean weight up to that resampling
  double log_sum_ = 0;      // logarithm of the sum of weights when shares were last written
  std::vector<double> shares_;
  std::vector<i64> read_;                           // numbers with up-to-date rows, which later buckets may read
  std::vector<std::vector<std::int32_t>> origins_;  // for each resampling, the ancestor of each sample
  std::vector<std::vector<i64>> unread_;            // for each resampling, the numbers whose rows no later bucket reads
  std::vector<std::int32_t> states_before_, origin_;
};

}  // namespace elimina::approx
