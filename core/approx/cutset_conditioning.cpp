#include "approx/cutset_conditioning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stop.hpp"

namespace elimina::approx {

namespace {

// A slice is left out of the sum and of the marginals if log(its sum / the largest slice's sum) is below this.
constexpr double kLeastLogShare = -60;

}  // namespace

CutsetConditioning::CutsetConditioning(std::vector<std::int64_t> sizes, const ScopeList& scopes,
                                       std::vector<double> values, std::vector<std::int32_t> order)
    : tree_(sizes, scopes, std::move(order)), sizes_(std::move(sizes)), begins_(sizes_.size() + 1, 0),
      values_(std::move(values)), states_(sizes_.size(), 0), log_peak_(-std::numeric_limits<double>::infinity()) {
  std::partial_sum(sizes_.begin(), sizes_.end(), begins_.begin() + 1);
  sums_.resize(std::size_t(begins_.back()));
  std::vector<bool> is_eliminated(sizes_.size(), false);
  for (const std::int32_t v : tree_.order()) is_eliminated[v] = true;
  for (std::size_t v = 0; v < sizes_.size(); ++v)
    if (!is_eliminated[v]) cutset_.push_back(std::int32_t(v));
}

void CutsetConditioning::add_slice() {
  const double log = tree_.collect(values_, states_, tables_);
  is_accurate_ &= tree_.is_accurate(tables_);
  if (log > log_peak_) {
    const double factor = std::exp(log_peak_ - log);
    for (double& sum : sums_) sum *= factor;
    total_ *= factor;
    log_peak_ = log;
  }
  if (!(log > log_peak_ + kLeastLogShare)) return;
  const double weight = std::exp(log - log_peak_);
  total_ += weight;
  for (const std::int32_t v : cutset_) sums_[std::size_t(begins_[v] + states_[v])] += weight;
  tree_.add_marginals(weight, sums_, tables_);
}

bool CutsetConditioning::run() {
  while (!is_done_) {
    add_slice();
    std::size_t digit = cutset_.size();
    for (;;) {
      if (digit-- == 0) {
        is_done_ = true;
        break;
      }
      const std::int32_t v = cutset_[digit];
      if (++states_[v] < sizes_[v]) break;
      states_[v] = 0;
    }
    if (!is_done_ && stopped()) return false;
  }
  return true;
}

double CutsetConditioning::progress() const {
  if (is_done_) return 1;
  double share = 1, progress = 0;
  for (const std::int32_t v : cutset_) progress += (share /= double(sizes_[v])) * states_[v];
  return progress;
}

double CutsetConditioning::log_sum() const { return log_peak_ + std::log(total_); }

std::vector<double> CutsetConditioning::marginals() const {
  std::vector<double> shares = sums_;
  for (double& share : shares) share /= total_;
  return shares;
}

}  // namespace elimina::approx
