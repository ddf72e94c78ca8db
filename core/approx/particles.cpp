#include "approx/particles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace elimina::approx {

namespace {
constexpr double kNothing = -std::numeric_limits<double>::infinity();
}

void Particles::begin(std::int32_t* states, i64 row, std::span<double> logs) {
  states_ = states, row_ = row, logs_ = logs;
  log_mean_ = 0;
  read_.clear(), origins_.clear(), unread_.clear();
}

double Particles::share_out() {
  const double peak = *std::max_element(logs_.begin(), logs_.end());
  if (peak == kNothing) return 0;
  double total = 0, squares = 0;
  for (std::size_t lane = 0; lane < logs_.size(); ++lane) {
    const double share = std::exp(logs_[lane] - peak);
    shares_[lane] = share;
    total += share;
    squares += share * share;
  }
  for (std::size_t lane = 0; lane < logs_.size(); ++lane) shares_[lane] /= total;
  log_sum_ = peak + std::log(total);
  return total * total / squares;
}

void Particles::resample_if_uneven(i64 number, double point) {
  // `even`: range of the log-weights below which samples count as even; `least_share`: samples are resampled if their
  // effective number is below this share of their number.
  constexpr double even = 0.5, least_share = 0.5;
  const auto [low, high] = std::minmax_element(logs_.begin(), logs_.end());
  if (*high - *low < even || *high == kNothing) return;
  const std::size_t count = logs_.size();
  if (share_out() >= least_share * double(count)) return;
  log_mean_ += log_sum_ - std::log(double(count));
  // Systematic resampling: evenly spaced points on the cumulative shares.
  std::vector<std::int32_t>& origin = origins_.emplace_back(count);
  double end = shares_[0];
  std::size_t sample = 0;
  for (std::size_t lane = 0; lane < count; ++lane) {
    const double quantile = (double(lane) + point) / double(count);
    while (end <= quantile && sample + 1 < count) end += shares_[++sample];
    origin[lane] = std::int32_t(sample);
  }
  // Rounding may leave points beyond the last sample with a positive weight.
  std::int32_t last = std::int32_t(count - 1);
  while (!(shares_[std::size_t(last)] > 0)) --last;
  for (std::int32_t& lane : origin) lane = std::min(lane, last);
  std::fill(logs_.begin(), logs_.end(), 0.0);
  std::vector<i64>& unread = unread_.emplace_back();
  std::size_t survivors = 0;
  states_before_.resize(count);
  for (const i64 v : read_) {
    if (last_uses_[std::size_t(v)] >= number) {
      unread.push_back(v);
      continue;
    }
    read_[survivors++] = v;
    std::int32_t* const row = row_of(v);
    std::copy_n(row, count, states_before_.begin());
    for (std::size_t lane = 0; lane < count; ++lane) row[lane] = states_before_[std::size_t(origin[lane])];
  }
  read_.resize(survivors);
}

double Particles::finish() {
  const std::size_t count = logs_.size();
  const double even = share_out();
  for (double& log : logs_) log += log_mean_;
  origin_.resize(count);
  std::iota(origin_.begin(), origin_.end(), 0);
  states_before_.resize(count);
  for (std::size_t event = origins_.size(); event-- > 0;) {
    for (std::int32_t& lane : origin_) lane = origins_[event][std::size_t(lane)];
    for (const i64 v : unread_[event]) {
      std::int32_t* const row = row_of(v);
      std::copy_n(row, count, states_before_.begin());
      for (std::size_t lane = 0; lane < count; ++lane) row[lane] = states_before_[std::size_t(origin_[lane])];
    }
  }
  if (origins_.empty() || even == 0) return even;
  std::vector<double> sums(count);
  for (std::size_t lane = 0; lane < count; ++lane) sums[std::size_t(origin_[lane])] += shares_[lane];
  double squares = 0;
  for (const double sum : sums) squares += sum * sum;
  return 1 / squares;
}

}  // namespace elimina::approx
