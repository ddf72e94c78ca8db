#include "tour_search.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace elimina::tsp {

namespace {

constexpr int kNeighbours = 10, kLongestPiece = 50;
// How many candidates are tried at each depth: what is deeper takes more time than it is worth after a double bridge.
constexpr int kBreadth[] = {8, 5, 3};
constexpr int kDepth = static_cast<int>(std::size(kBreadth));

}  // namespace

TourSearch::TourSearch(Distances distances, std::uint64_t seed)
    : distances_(distances), n_(distances.cities), each_(std::min(kNeighbours, n_ - 1)), waits_(static_cast<std::size_t>(n_), 0),
      candidates_(kDepth), random_(seed * 2 + 0x9e3779b97f4a7c15) {
  find_neighbours();
  start(nearest_first());
}

void TourSearch::find_neighbours() {
  std::vector<int> others(static_cast<std::size_t>(n_));
  for (int i = 0; i < n_; ++i) {
    std::iota(others.begin(), others.end(), 0);
    std::swap(others[static_cast<std::size_t>(i)], others.back());
    const std::int32_t* row = distances_.row(i);
    std::partial_sort(others.begin(), others.begin() + each_, others.end() - 1,
                      [row](int a, int b) { return std::pair(row[a], a) < std::pair(row[b], b); });
    neighbours_.insert(neighbours_.end(), others.begin(), others.begin() + each_);
  }
}

// From city 0 on, always the nearest one that is left.
std::vector<int> TourSearch::nearest_first() const {
  std::vector<int> result, left(static_cast<std::size_t>(n_ - 1));
  std::iota(left.begin(), left.end(), 1);
  result.push_back(0);
  while (!left.empty()) {
    const std::int32_t* row = distances_.row(result.back());
    const auto nearest = std::min_element(left.begin(), left.end(), [row](int a, int b) { return row[a] < row[b]; });
    result.push_back(*nearest);
    *nearest = left.back();
    left.pop_back();
  }
  return result;
}

void TourSearch::start(const std::vector<int>& tour) {
  tour_ = tour;
  place_.resize(tour.size());
  length_ = 0;
  for (int i = 0; i < n_; ++i) {
    place_[static_cast<std::size_t>(at(i))] = i;
    length_ += distances_.between(at(i), at(i + 1 < n_ ? i + 1 : 0));
  }
  for (int i = 0; i < n_; ++i) wait(at(i));
  gained_ = 0;
  improve();
  length_ -= gained_;
  log_.clear();
}

void TourSearch::kick(std::uint64_t count) {
  if (n_ < 8) return;
  for (; count > 0; --count) {
    gained_ = 0;
    bridge();
    improve();
    if (gained_ < 0)
      undo_to(0);
    else
      length_ -= gained_;
    log_.clear();
  }
}

int TourSearch::next(int city) const {
  const int place = place_[static_cast<std::size_t>(city)];
  return backwards_ ? at(place > 0 ? place - 1 : n_ - 1) : at(place + 1 < n_ ? place + 1 : 0);
}

int TourSearch::previous(int city) const {
  const int place = place_[static_cast<std::size_t>(city)];
  return backwards_ ? at(place + 1 < n_ ? place + 1 : 0) : at(place > 0 ? place - 1 : n_ - 1);
}

// What is between two places, which may pass the end; or, as the cycle is the same in the other direction, what is not.
void TourSearch::reverse_places(int from, int to) {
  int inside = to - from + 1;
  if (inside <= 0) inside += n_;
  if (2 * inside > n_) {
    std::swap(from, to);
    from = from + 1 < n_ ? from + 1 : 0;
    to = to > 0 ? to - 1 : n_ - 1;
    inside = n_ - inside;
    backwards_ = !backwards_;
  }
  for (int swaps = inside / 2; swaps > 0; --swaps) {
    std::swap(tour_[static_cast<std::size_t>(from)], tour_[static_cast<std::size_t>(to)]);
    place_[static_cast<std::size_t>(at(from))] = from;
    place_[static_cast<std::size_t>(at(to))] = to;
    from = from + 1 < n_ ? from + 1 : 0;
    to = to > 0 ? to - 1 : n_ - 1;
  }
}

// The path from one city on to another in the present direction.
void TourSearch::reverse_path(int from, int to) {
  if (backwards_) std::swap(from, to);
  const Reversal reversal{place_[static_cast<std::size_t>(from)], place_[static_cast<std::size_t>(to)]};
  log_.push_back(reversal);
  reverse_places(reversal.from, reversal.to);
}

void TourSearch::undo_to(std::size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) reverse_places(log_.back().from, log_.back().to);
}

void TourSearch::wait(int city) {
  if (std::exchange(waits_[static_cast<std::size_t>(city)], 1)) return;
  queue_.push_back(city);
}

void TourSearch::improve() {
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const int city = queue_[i];
    waits_[static_cast<std::size_t>(city)] = 0;
    while (improve_at(city)) continue;
  }
  queue_.clear();
}

bool TourSearch::improve_at(int city) {
  for (const bool backwards : {false, true}) {
    backwards_ = backwards;
    const int end = next(city);
    if (extend(city, end, distances_.between(city, end), 0)) {
      wait(end);
      return true;
    }
  }
  return false;
}

// The tour less its edge from `fixed` to `end` is a path. An edge is added at `end`, the one that makes a path of it again is
// removed, and so on, as long as what is removed is longer (`open`: by how much); true: the tour is shorter.
bool TourSearch::extend(int fixed, int end, Length open, int depth) {
  if (depth == kDepth) return false;
  std::vector<Candidate>& found = candidates_[static_cast<std::size_t>(depth)];
  find_candidates(fixed, end, open, found);
  const auto breadth = static_cast<std::size_t>(kBreadth[depth]);
  for (std::size_t i = 0; i < std::min(breadth, found.size()); ++i) {
    const Candidate c = found[i];
    const std::size_t mark = log_.size();
    reverse_path(end, c.before);
    const Length gain = c.value - distances_.between(fixed, c.before);
    if (gain > 0)
      gained_ += gain;
    else if (!extend(fixed, c.before, c.value, depth + 1)) {
      undo_to(mark);
      continue;
    }
    for (const int city : {fixed, end, c.city, c.before}) wait(city);
    return true;
  }
  return false;
}

void TourSearch::find_candidates(int fixed, int end, Length open, std::vector<Candidate>& found) const {
  found.clear();
  const int* near = neighbours_.data() + static_cast<std::size_t>(end) * static_cast<std::size_t>(each_);
  const int after = next(end);
  for (int k = 0; k < each_; ++k) {
    const int city = near[k];
    const Length left = open - distances_.between(end, city);
    if (left <= 0) break;
    if (city == after || city == fixed) continue;
    const int before = previous(city);
    found.push_back({left + distances_.between(before, city), city, before});
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return std::pair(-a.value, a.city) < std::pair(-b.value, b.city); });
}

// Two pieces that follow each other change places.
void TourSearch::bridge() {
  backwards_ = false;
  const auto longest = static_cast<std::uint64_t>(std::min(kLongestPiece, (n_ - 2) / 2));
  const int first = static_cast<int>(1 + below(longest)), second = static_cast<int>(1 + below(longest));
  const auto place = static_cast<int>(below(static_cast<std::uint64_t>(n_)));
  const auto there = [&](int steps) { return at((place + steps) % n_); };
  const int before = there(0), a = there(1), b = there(first), c = there(first + 1), d = there(first + second), after = there(first + second + 1);
  gained_ += distances_.between(before, a) + distances_.between(b, c) + distances_.between(d, after);
  gained_ -= distances_.between(before, c) + distances_.between(d, a) + distances_.between(b, after);
  reverse_path(a, d);
  reverse_path(d, c);
  reverse_path(b, a);
  for (const int city : {before, a, b, c, d, after}) wait(city);
}

std::uint64_t TourSearch::below(std::uint64_t count) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return (random_ >> 16) % count;
}

}  // namespace elimina::tsp
