#include "approx/message_sweeps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "stop.hpp"

namespace elimina::approx {

namespace {

constexpr double kLogOfZero = -std::numeric_limits<double>::infinity();

// A product of many positive numbers, whose logarithm is computed with few calls of `log`.
class LogProduct {
 public:
  void multiply(double factor) {
    product_ *= factor;
    if (product_ > kLargest || product_ < 1 / kLargest) settle();
  }
  double logarithm() {
    settle();
    return log_;
  }

 private:
  static constexpr double kLargest = 1e140;  // the square is within the range of floats

  void settle() {
    log_ += std::log(product_);
    product_ = 1;
  }

  double product_ = 1, log_ = 0;
};

}  // namespace

MessageSweeps::MessageSweeps(std::vector<std::int64_t> sizes, ScopeList scopes, Cells values)
    : sizes_(std::move(sizes)), firsts_(sizes_.size() + 1), scopes_(std::move(scopes)), values_(std::move(values)) {
  for (std::size_t v = 0; v < sizes_.size(); ++v) firsts_[v + 1] = firsts_[v] + sizes_[v];
  beliefs_.resize(std::size_t(firsts_.back()));
  for (std::size_t v = 0; v < sizes_.size(); ++v)
    std::fill_n(beliefs_.begin() + firsts_[v], sizes_[v], 1.0 / double(sizes_[v]));
  table_cells_.reserve(scopes_.count());
  std::size_t cells = 0, largest_table = 1, largest_scope = 1;
  for (std::size_t factor = 0; factor < scopes_.count(); ++factor) {
    table_cells_.push_back(std::size_t(cells_of(scopes_[factor], sizes_)));
    cells += message_cells(factor);
    largest_table = std::max(largest_table, table_cells_.back());
    largest_scope = std::max(largest_scope, message_cells(factor));
  }
  messages_.reserve(cells);
  std::map<Runs, std::uint32_t> numbers;
  Looks looks;
  for (std::size_t factor = 0; factor < scopes_.count(); ++factor) {
    looks.look();
    for (const std::int32_t v : scopes_[factor]) messages_.insert(messages_.end(), sizes_[v], 1.0 / double(sizes_[v]));
    if (scopes_[factor].size() < 3) continue;
    run_numbers_.resize(std::size_t(scopes_.starts[factor + 1]));
    for (std::int64_t member = scopes_.starts[factor]; member < scopes_.starts[factor + 1]; ++member) {
      Runs runs = runs_of(scopes_[factor], std::span(&scopes_.members[member], 1), sizes_);
      const auto [entry, is_new] = numbers.try_emplace(std::move(runs), std::uint32_t(runs_.size()));
      if (is_new) runs_.push_back(entry->first);
      run_numbers_[member] = entry->second;
    }
  }
  cavities_.resize(largest_scope);
  joint_.resize(largest_table);
  sums_.resize(largest_scope);
}

std::size_t MessageSweeps::message_cells(std::size_t factor) const {
  std::size_t cells = 0;
  for (const std::int32_t v : scopes_[factor]) cells += std::size_t(sizes_[v]);
  return cells;
}

// Divides a belief by one of its messages, and normalises the quotient; a state that the message excludes stays
// excluded.
void MessageSweeps::take_out(std::int32_t v, const double* message, double* cavity) const {
  const double* const belief = beliefs_.data() + firsts_[v];
  double total = 0;
  for (std::int64_t i = 0; i < sizes_[v]; ++i) {
    cavity[i] = message[i] > 0 ? belief[i] / message[i] : 0;
    total += cavity[i];
  }
  for (std::int64_t i = 0; i < sizes_[v]; ++i) cavity[i] /= total;
}

// Replaces a message by `sums`, and updates the belief; returns the change of the message.
double MessageSweeps::send(std::int32_t v, double* message, const double* cavity, double* sums, double damping) {
  const std::int64_t size = sizes_[v];
  double total = 0, product = 0, change = 0;
  for (std::int64_t i = 0; i < size; ++i) total += sums[i];
  if (!(total > 0) || !std::isfinite(total)) {
    impossible_ = true;
    return 0;
  }
  double* const belief = beliefs_.data() + firsts_[v];
  for (std::int64_t i = 0; i < size; ++i) {
    const double value = (1 - damping) * (sums[i] / total) + damping * message[i];
    change = std::max(change, std::abs(value - message[i]));
    message[i] = value;
    belief[i] = cavity[i] * value;
    product += belief[i];
  }
  if (!(product > 0)) {
    impossible_ = true;
    return 0;
  }
  for (std::int64_t i = 0; i < size; ++i) belief[i] /= product;
  return change;
}

// A faster `update_pair` for two variables of two states, because most very large models are made of such factors.
double MessageSweeps::update_binary_pair(const Place& place, double damping) {
  const std::span scope = scopes_[place.factor];
  const double* const table = values_.data() + place.table;
  double* const message = messages_.data() + place.message;
  double* const belief[] = {beliefs_.data() + firsts_[scope[0]], beliefs_.data() + firsts_[scope[1]]};
  double cavity[4];
  for (const int side : {0, 2}) {
    for (const int i : {0, 1}) {
      const double received = message[side + i];
      cavity[side + i] = received > 0 ? belief[side / 2][i] / received : 0;
    }
    const double scale = 1 / (cavity[side] + cavity[side + 1]);
    cavity[side] *= scale, cavity[side + 1] *= scale;
  }
  const double sums[] = {table[0] * cavity[2] + table[1] * cavity[3], table[2] * cavity[2] + table[3] * cavity[3],
                         table[0] * cavity[0] + table[2] * cavity[1], table[1] * cavity[0] + table[3] * cavity[1]};
  double change = 0;
  for (const int side : {0, 2}) {
    const double scale = (1 - damping) / (sums[side] + sums[side + 1]);
    double products[2];
    for (const int i : {0, 1}) {
      const double value = scale * sums[side + i] + damping * message[side + i];
      change = std::max(change, std::abs(value - message[side + i]));
      message[side + i] = value;
      products[i] = cavity[side + i] * value;
    }
    const double total = products[0] + products[1];
    if (!(total > 0) || !std::isfinite(total)) {
      impossible_ = true;
      return 0;
    }
    belief[side / 2][0] = products[0] / total, belief[side / 2][1] = products[1] / total;
  }
  return change;
}

double MessageSweeps::update_pair(const Place& place, double damping) {
  const std::span scope = scopes_[place.factor];
  const std::int64_t slow = sizes_[scope[0]], fast = sizes_[scope[1]];
  if (slow == 2 && fast == 2) return update_binary_pair(place, damping);
  const double* table = values_.data() + place.table;
  double* const first = messages_.data() + place.message;
  double *const second = first + slow, *const rows = cavities_.data(), *const columns = rows + slow;
  take_out(scope[0], first, rows);
  take_out(scope[1], second, columns);
  double *const row_sums = sums_.data(), *const column_sums = row_sums + slow;
  std::fill_n(column_sums, fast, 0.0);
  for (std::int64_t row = 0; row < slow; ++row, table += fast) {
    double sum = 0;
    for (std::int64_t column = 0; column < fast; ++column) {
      sum += table[column] * columns[column];
      column_sums[column] += table[column] * rows[row];
    }
    row_sums[row] = sum;
  }
  const double change = send(scope[0], first, rows, row_sums, damping);
  return std::max(change, send(scope[1], second, columns, column_sums, damping));
}

double MessageSweeps::update(const Place& place, double damping) {
  const std::span scope = scopes_[place.factor];
  if (scope.size() == 2) return update_pair(place, damping);
  double* const messages = messages_.data() + place.message;
  const double* const table = values_.data() + place.table;
  if (scope.empty()) return 0;
  if (scope.size() == 1) {
    take_out(scope[0], messages, cavities_.data());
    std::copy_n(table, sizes_[scope[0]], sums_.data());
    return send(scope[0], messages, cavities_.data(), sums_.data(), damping);
  }
  std::copy_n(table, table_cells_[place.factor], joint_.data());
  std::size_t offset = 0;
  const std::uint32_t* const numbers = run_numbers_.data() + scopes_.starts[place.factor];
  for (std::size_t i = 0; i < scope.size(); offset += std::size_t(sizes_[scope[i]]), ++i) {
    take_out(scope[i], messages + offset, cavities_.data() + offset);
    multiply_by(joint_.data(), runs_[numbers[i]], cavities_.data() + offset);
  }
  double change = 0;
  offset = 0;
  for (std::size_t i = 0; i < scope.size(); offset += std::size_t(sizes_[scope[i]]), ++i) {
    const std::span sums = std::span(sums_).subspan(offset, std::size_t(sizes_[scope[i]]));
    std::ranges::fill(sums, 0.0);
    add_up(joint_.data(), runs_[numbers[i]], sums.data());
    const double* const cavity = cavities_.data() + offset;
    for (std::size_t state = 0; state < sums.size(); ++state)
      sums[state] = cavity[state] > 0 ? sums[state] / cavity[state] : 0;
    change = std::max(change, send(scope[i], messages + offset, cavity, sums.data(), damping));
  }
  return change;
}

bool MessageSweeps::run(double tolerance, double damping, std::uint64_t sweeps) {
  constexpr std::size_t cells_between_looks = 1 << 16;
  for (; sweeps > 0 && !impossible_; --sweeps, forward_ = !forward_) {
    const std::size_t count = scopes_.count();
    double change = 0;
    std::size_t cells = 0;
    Place place{0, 0, 0};
    if (!forward_) place = {count, values_.size(), messages_.size()};
    for (std::size_t step = 0; step < count && !impossible_; ++step) {
      if (!forward_) {
        --place.factor;
        place.table -= table_cells_[place.factor];
        place.message -= message_cells(place.factor);
      }
      change = std::max(change, update(place, damping));
      cells += table_cells_[place.factor] * scopes_[place.factor].size();
      if (forward_) {
        place.table += table_cells_[place.factor];
        place.message += message_cells(place.factor);
        ++place.factor;
      }
      if (cells < cells_between_looks) continue;
      cells = 0;
      if (stopped()) {
        residual_ = std::max(residual_, change);
        return false;
      }
    }
    residual_ = change;
    if (change <= tolerance) return !impossible_;
  }
  return false;
}

// Computes all beliefs from the messages; returns the logarithm of the product of their sums.
double MessageSweeps::log_of_beliefs() {
  constexpr double smallest = 1e-100;
  LogProduct product;
  std::ranges::fill(beliefs_, 1.0);
  const double* message = messages_.data();
  for (const std::int32_t v : scopes_.members) {
    double* const belief = beliefs_.data() + firsts_[v];
    double peak = 0;
    for (std::int64_t i = 0; i < sizes_[v]; ++i) peak = std::max(peak, belief[i] *= message[i]);
    message += sizes_[v];
    if (peak >= smallest) continue;
    if (!(peak > 0)) return kLogOfZero;
    for (std::int64_t i = 0; i < sizes_[v]; ++i) belief[i] /= peak;
    product.multiply(peak);
  }
  for (std::size_t v = 0; v < sizes_.size(); ++v) {
    const std::span belief = std::span(beliefs_).subspan(std::size_t(firsts_[v]), std::size_t(sizes_[v]));
    const double total = sum_of(belief);
    product.multiply(total);
    for (double& cell : belief) cell /= total;
  }
  return product.logarithm();
}

double MessageSweeps::log_sum() {
  if (impossible_) return kLogOfZero;
  LogProduct product;
  const double log = log_of_beliefs();
  Place place;
  for (; place.factor < scopes_.count() && log > kLogOfZero; ++place.factor) {
    const std::span scope = scopes_[place.factor];
    std::copy_n(values_.data() + place.table, table_cells_[place.factor], joint_.data());
    double cells = double(table_cells_[place.factor]), overlap = 1;
    const double* message = messages_.data() + place.message;
    for (const std::int32_t v : scope) {
      double* const cavity = cavities_.data();
      take_out(v, message, cavity);
      double sum = 0;
      for (std::int64_t i = 0; i < sizes_[v]; ++i) sum += cavity[i] * message[i];
      overlap *= sum;
      multiply_by(joint_.data(), scope, cavity, std::span(&v, 1), sizes_);
      message += sizes_[v];
    }
    const double sum = sum_of(std::span(joint_).first(std::size_t(cells)));
    if (!(sum > 0)) return kLogOfZero;
    product.multiply(sum);
    product.multiply(1 / overlap);
    place.table += table_cells_[place.factor];
    place.message += message_cells(place.factor);
  }
  const double total = log + product.logarithm();
  return std::isnan(total) ? kLogOfZero : total;
}

}  // namespace elimina::approx
