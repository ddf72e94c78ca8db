#include "rows.hpp"

#include <bit>
#include <numeric>
#include <utility>

namespace elimina::filter::ELIMINA_ISA {

namespace {

constexpr int direct_bits = 20;

Key scramble(Key key) { return (key * 0x9E3779B97F4A7C15ull) >> 20; }

}  // namespace

Groups::Groups(const std::vector<Key>& keys, Key mask) : mask_(mask), direct_(std::popcount(mask) <= direct_bits) {
  row_.resize(keys.size());
  if (direct_) {
    start_.assign((std::size_t{1} << std::popcount(mask)) + 1, 0);
    for (Key k : keys) ++start_[extract(k, mask) + 1];
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
    std::vector<std::uint32_t> next(start_.begin(), start_.end() - 1);
    for (std::size_t i = 0; i < keys.size(); ++i) row_[next[extract(keys[i], mask)]++] = static_cast<std::uint32_t>(i);
    return;
  }
  std::vector<std::pair<Key, std::uint32_t>> sorted(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) sorted[i] = {keys[i] & mask, static_cast<std::uint32_t>(i)};
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i].first != sorted[i - 1].first) {
      start_.push_back(static_cast<std::uint32_t>(i));
      name_.push_back(sorted[i].first);
    }
    row_[i] = sorted[i].second;
  }
  start_.push_back(static_cast<std::uint32_t>(sorted.size()));
  wrap_ = std::bit_ceil(2 * name_.size() + 1) - 1;
  slot_.assign(wrap_ + 1, 0);
  for (std::size_t g = 0; g < name_.size(); ++g) {
    Key at = scramble(name_[g]) & wrap_;
    while (slot_[at]) at = (at + 1) & wrap_;
    slot_[at] = static_cast<std::uint32_t>(g + 1);
  }
}

std::pair<const std::uint32_t*, const std::uint32_t*> Groups::find(Key key) const {
  const std::uint32_t* rows = row_.data();
  if (direct_) {
    const Key q = extract(key, mask_);
    return {rows + start_[q], rows + start_[q + 1]};
  }
  const Key wanted = key & mask_;
  for (Key at = scramble(wanted) & wrap_; slot_[at]; at = (at + 1) & wrap_) {
    const std::uint32_t g = slot_[at] - 1;
    if (name_[g] == wanted) return {rows + start_[g], rows + start_[g + 1]};
  }
  return {rows, rows};
}

Value cut_rows(Rows& rows, std::size_t most) {
  if (rows.count() <= most) return never;
  std::vector<Value> ranked = rows.total;
  std::nth_element(ranked.begin(), ranked.begin() + most, ranked.end());
  const Value limit = ranked[most];
  std::size_t to = 0, ties = most - std::count_if(ranked.begin(), ranked.begin() + most, [&](Value x) { return x < limit; });
  for (std::size_t i = 0; i < rows.count(); ++i) {
    if (rows.total[i] > limit || (rows.total[i] == limit && ties == 0)) continue;
    ties -= rows.total[i] == limit;
    rows.key[to] = rows.key[i];
    rows.cost[to] = rows.cost[i];
    rows.total[to++] = rows.total[i];
  }
  rows.key.resize(to);
  rows.cost.resize(to);
  rows.total.resize(to);
  return limit;
}

Rows join_rows(const Rows& left, const Rows& right, Key shared, Stage& stage) {
  const Groups groups(right.key, shared);
  Rows out{join(left.scope, right.scope), {}, {}, {}};
  for (std::size_t i = 0; i < left.count() && !stage.is_over(out); ++i) {
    const auto [first, last] = groups.find(left.key[i]);
    for (const std::uint32_t* r = first; r != last; ++r) {
      const Key key = left.key[i] | right.key[*r];
      Value cost = left.cost[i] + right.cost[*r];
      Value total;
      if (stage.admits(key, cost, total)) out.add(key, cost, total);
    }
  }
  return out;
}

Rows extend_rows(const Rows& rows, Var v, int size, int shift, Stage& stage) {
  Rows out{join(rows.scope, {v}), {}, {}, {}};
  for (std::size_t i = 0; i < rows.count() && !stage.is_over(out); ++i)
    for (Key x = 0; x < static_cast<Key>(size); ++x) {
      const Key key = rows.key[i] | x << shift;
      Value cost = rows.cost[i];
      Value total;
      if (stage.admits(key, cost, total)) out.add(key, cost, total);
    }
  return out;
}

void sort_rows(Rows& rows, int bits) {
  if (std::is_sorted(rows.key.begin(), rows.key.end())) return;
  constexpr int digit = 11;
  std::vector<Key> key(rows.count());
  std::vector<Value> cost(rows.count());
  std::vector<std::uint32_t> next(std::size_t{1} << digit);
  for (int at = 0; at < bits; at += digit) {
    std::fill(next.begin(), next.end(), 0);
    const Key low = (Key{1} << digit) - 1;
    for (Key k : rows.key) ++next[k >> at & low];
    std::uint32_t start = 0;
    for (std::uint32_t& count : next) start += std::exchange(count, start);
    for (std::size_t i = 0; i < rows.count(); ++i) {
      const std::uint32_t to = next[rows.key[i] >> at & low]++;
      key[to] = rows.key[i];
      cost[to] = rows.cost[i];
    }
    rows.key.swap(key);
    rows.cost.swap(cost);
  }
}

Rows least_rows(const Rows& rows, int bits, int all_bits) {
  Rows sorted = rows;
  sort_rows(sorted, all_bits);
  Rows out{rows.scope, {}, {}, {}};
  for (std::size_t i = 0; i < sorted.count(); ++i) {
    const Key key = sorted.key[i] >> bits;
    if (out.key.empty() || out.key.back() != key) {
      out.key.push_back(key);
      out.cost.push_back(sorted.cost[i]);
    } else {
      out.cost.back() = std::min(out.cost.back(), sorted.cost[i]);
    }
  }
  return out;
}

}  // namespace elimina::filter::ELIMINA_ISA
