#include "tour_search.hpp"

#include <algorithm>
#include <utility>

#include "greedy_tour.hpp"
#include "sites.hpp"
#include "stop.hpp"

namespace elimina::tsp {

namespace {

// Longest path that a double bridge moves, in cities, and largest number of chained 3-opt moves. Shorter and longer
// paths, and fewer and more moves, gave longer tours of rat575, fl3795 and 2,000 clustered cities in the same time.
constexpr int kLongestPiece = 50, kMoves = 3;
constexpr int kKicksBetweenStops = 16;

// Returns the cities at each site. A tour needs three sites, so if there are fewer, some cities get sites of their own.
std::vector<std::vector<int>> cities_at_sites(Distances distances) {
  std::vector<std::vector<int>> result;
  const std::vector<int> position = find_sites(distances);
  for (int city = 0; city < distances.cities; ++city) {
    const auto site = static_cast<std::size_t>(position[static_cast<std::size_t>(city)]);
    if (site == result.size()) result.emplace_back();
    result[site].push_back(city);
  }
  while (result.size() < 3) {
    const auto largest = std::max_element(result.begin(), result.end(),
                                          [](const auto& a, const auto& b) { return a.size() < b.size(); });
    const int city = largest->back();
    largest->pop_back();
    result.push_back({city});
  }
  return result;
}

// Returns the distances between sites; empty if each city has its own site.
std::vector<std::int32_t> distances_of_sites(Distances distances, const std::vector<std::vector<int>>& cities_at) {
  std::vector<std::int32_t> result;
  if (static_cast<int>(cities_at.size()) == distances.cities) return result;
  result.reserve(cities_at.size() * cities_at.size());
  for (const std::vector<int>& from : cities_at)
    for (const std::vector<int>& to : cities_at) result.push_back(distances.between(from.front(), to.front()));
  return result;
}

}  // namespace

TourSearch::TourSearch(Distances distances, std::uint64_t seed)
    : cities_at_(cities_at_sites(distances)), between_sites_(distances_of_sites(distances, cities_at_)),
      distances_{between_sites_.empty() ? distances.data : between_sites_.data(), static_cast<int>(cities_at_.size())},
      n_(distances_.cities), neighbours_(find_neighbours(distances_)), waits_(cities_at_.size(), 0),
      random_(seed * 2 + 0x9e3779b97f4a7c15) {
  begin(greedy_tour(distances_, neighbours_));
}

void TourSearch::start(const std::vector<int>& tour) {
  std::vector<int> site_of(tour.size()), sites;
  for (std::size_t site = 0; site < cities_at_.size(); ++site)
    for (const int city : cities_at_[site]) site_of[static_cast<std::size_t>(city)] = static_cast<int>(site);
  std::vector<std::uint8_t> is_done(cities_at_.size(), 0);
  for (const int city : tour) {
    const int site = site_of[static_cast<std::size_t>(city)];
    if (!std::exchange(is_done[static_cast<std::size_t>(site)], 1)) sites.push_back(site);
  }
  begin(sites);
}

std::vector<int> TourSearch::tour() const {
  std::vector<int> result;
  for (const int site : tour_) {
    const std::vector<int>& cities = cities_at_[static_cast<std::size_t>(site)];
    result.insert(result.end(), cities.begin(), cities.end());
  }
  return result;
}

std::pair<std::vector<int>, std::vector<int>> TourSearch::edges() const {
  std::vector<int> from = tour(), to(from.begin() + 1, from.end());
  to.push_back(from.front());
  const auto first_city = [this](int site) { return cities_at_[static_cast<std::size_t>(site)].front(); };
  for (int site = 0; site < n_; ++site)
    for (int k = 0; k < neighbours_.each; ++k) {
      from.push_back(first_city(site));
      to.push_back(first_city(neighbours_.of(site)[k]));
    }
  return {from, to};
}

void TourSearch::begin(const std::vector<int>& tour) {
  tour_ = tour;
  position_.resize(tour.size());
  length_ = 0;
  for (int i = 0; i < n_; ++i) {
    position_[static_cast<std::size_t>(at(i))] = i;
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
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % kKicksBetweenStops == 0 && stopped()) return;
    gained_ = 0;
    bridge();
    improve();
    if (gained_ < 0) undo_to(0);
    else length_ -= gained_;
    log_.clear();
  }
}

int TourSearch::next(int city) const {
  const int position = position_[static_cast<std::size_t>(city)];
  return backwards_ ? at(position > 0 ? position - 1 : n_ - 1) : at(position + 1 < n_ ? position + 1 : 0);
}

int TourSearch::previous(int city) const {
  const int position = position_[static_cast<std::size_t>(city)];
  return backwards_ ? at(position + 1 < n_ ? position + 1 : 0) : at(position > 0 ? position - 1 : n_ - 1);
}

// True if a city is on the path between two others in the current direction.
bool TourSearch::is_between(int from, int city, int to) const {
  if (backwards_) std::swap(from, to);
  const int first = position_of(from), middle = position_of(city), last = position_of(to);
  return first <= last ? first <= middle && middle <= last : middle >= first || middle <= last;
}

// Reverses the section between two positions (it may wrap around), or the rest of the cycle if that is shorter.
void TourSearch::reverse_section(int from, int to) {
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
    position_[static_cast<std::size_t>(at(from))] = from;
    position_[static_cast<std::size_t>(at(to))] = to;
    from = from + 1 < n_ ? from + 1 : 0;
    to = to > 0 ? to - 1 : n_ - 1;
  }
}

// Reverses the path from a city to another in the current direction.
void TourSearch::reverse_path(int from, int to) {
  if (backwards_) std::swap(from, to);
  const Reversal reversal{position_[static_cast<std::size_t>(from)], position_[static_cast<std::size_t>(to)]};
  log_.push_back(reversal);
  reverse_section(reversal.from, reversal.to);
}

void TourSearch::undo_to(std::size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) reverse_section(log_.back().from, log_.back().to);
}

void TourSearch::wait(int city) {
  if (std::exchange(waits_[static_cast<std::size_t>(city)], 1)) return;
  queue_.push_back(city);
}

// Improves the tour around the waiting cities; a stop request leaves the current tour.
void TourSearch::improve() {
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const int city = queue_[i];
    waits_[static_cast<std::size_t>(city)] = 0;
    if (i % kCitiesBetweenStops == 0 && stopped()) {
      for (const int other : queue_) waits_[static_cast<std::size_t>(other)] = 0;
      break;
    }
    while (improve_at(city)) continue;
  }
  queue_.clear();
}

bool TourSearch::improve_at(int city) {
  for (const bool backwards : {false, true}) {
    backwards_ = backwards;
    if (chain(city)) return true;
  }
  return false;
}

// Makes moves until the path closes into a shorter tour; returns true if it did.
bool TourSearch::chain(int t1) {
  int t2 = next(t1);
  Length open = distances_.between(t1, t2);
  const std::size_t mark = log_.size();
  touched_.assign({t1, t2});
  for (int i = 0; i < kMoves; ++i) {
    const Move move = find_move(t1, t2, open);
    if (move.kind == Move::Kind::none) break;
    make(t2, move);
    touched_.insert(touched_.end(), {move.t3, move.t4});
    if (move.t5 >= 0) touched_.insert(touched_.end(), {move.t5, move.t6});
    if (move.gain > 0) {
      gained_ += move.gain;
      for (const int city : touched_) wait(city);
      return true;
    }
    t2 = move.t6;
    open = move.open;
  }
  undo_to(mark);
  return false;
}

// Returns the first move found with which the path closes into a shorter tour; else the move that leaves the shortest
// path.
TourSearch::Move TourSearch::find_move(int t1, int t2, Length open) const {
  Move best;
  const int* neighbours = neighbours_.of(t2);
  for (int k = 0; k < neighbours_.each; ++k) {
    const int t3 = neighbours[k];
    const Length balance = open - distances_.between(t2, t3);
    if (balance <= 0) break;
    const int before = previous(t3);
    if (t3 == t1 || before == t2) continue;
    const Length without = balance + distances_.between(before, t3), gain = without - distances_.between(before, t1);
    const Move two{Move::Kind::two, t3, before, -1, -1, without, gain};
    if (gain > 0) return two;
    if (extend(two, t1, t2, best)) return best;
    // A cycle from t2 to t3, and a path from the city after t3 to t1: t5 has to open the cycle.
    const int after = next(t3);
    if (extend({Move::Kind::exchange, t3, after, -1, -1, balance + distances_.between(t3, after), 0}, t1, t2, best))
      return best;
  }
  return best;
}

// Tries 3-opt moves that begin with two given edges; returns true if the best one makes a shorter tour.
bool TourSearch::extend(const Move& two, int t1, int t2, Move& best) const {
  const int t3 = two.t3, t4 = two.t4;
  const auto is_best = [&](Move::Kind kind, int t5, int t6, Length balance) {
    const Length open = balance + distances_.between(t5, t6), gain = open - distances_.between(t6, t1);
    if (gain > 0 || open > best.open) best = {kind, t3, t4, t5, t6, open, gain};
    return gain > 0;
  };
  const int* neighbours = neighbours_.of(t4);
  for (int k = 0; k < neighbours_.each; ++k) {
    const int t5 = neighbours[k];
    const Length balance = two.open - distances_.between(t4, t5);
    if (balance <= 0) break;
    if (two.kind == Move::Kind::two) {
      const int t6 = is_between(t2, t5, t4) ? next(t5) : previous(t5);
      if (t5 != t3 && t6 != t4 && is_best(Move::Kind::two_twice, t5, t6, balance)) return true;
    } else if (is_between(t2, t5, t3)) {
      if (t5 != t3 && is_best(Move::Kind::exchange, t5, next(t5), balance)) return true;
      if (t5 != t2 && t5 != t3 && is_best(Move::Kind::exchange_reversed, t5, previous(t5), balance)) return true;
    }
  }
  return false;
}

void TourSearch::make(int t2, const Move& move) {
  switch (move.kind) {
    case Move::Kind::none: break;
    case Move::Kind::two: reverse_path(t2, move.t4); break;
    case Move::Kind::two_twice:
      reverse_path(t2, move.t4);
      reverse_path(move.t4, move.t6);
      break;
    case Move::Kind::exchange:
      reverse_path(t2, move.t3);
      reverse_path(move.t3, move.t6);
      reverse_path(move.t5, t2);
      break;
    case Move::Kind::exchange_reversed:
      reverse_path(t2, move.t6);
      reverse_path(move.t5, move.t3);
      break;
  }
}

// Makes a double bridge: exchanges two consecutive sections.
void TourSearch::bridge() {
  backwards_ = false;
  const auto longest = static_cast<std::uint64_t>(std::min(kLongestPiece, (n_ - 2) / 2));
  const int first = static_cast<int>(1 + below(longest)), second = static_cast<int>(1 + below(longest));
  const auto start = static_cast<int>(below(static_cast<std::uint64_t>(n_)));
  const auto there = [&](int steps) { return at((start + steps) % n_); };
  const int before = there(0), a = there(1), b = there(first), c = there(first + 1), d = there(first + second),
            after = there(first + second + 1);
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
