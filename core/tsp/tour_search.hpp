// Tours by iterated local search: Lin and Kernighan's chains (Operations Research 21, 1973) of sequential 3-opt moves
// over a few neighbours, and double bridges between close cities (Applegate, Cook and Rohe, INFORMS J. Computing 15,
// 2003).
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "distances.hpp"
#include "neighbours.hpp"

namespace elimina::tsp {

// A search of tours. A tour is an array, and moves reverse sections of the array. Cities with changed edges wait in a
// queue for the local search. Cities at the same site are consecutive and count as one.
class TourSearch {
 public:
  // Needs at least three cities. The first tour is greedy.
  TourSearch(Distances distances, std::uint64_t seed);

  // Makes `count` double bridges. Local search repairs each one; if the tour is then longer than before, the double
  // bridge and its repair are undone.
  void kick(std::uint64_t count);
  // Continues from another tour.
  void start(const std::vector<int>& tour);

  Length length() const { return length_; }
  std::vector<int> tour() const;
  // Returns the first and the second ends of edges: those of the tour, then those between neighbours.
  std::pair<std::vector<int>, std::vector<int>> edges() const;

 private:
  struct Reversal {
    int from, to;  // range of positions
  };
  // A move on a path: the tour without its edge from t1 to t2. The move adds edges t2-t3 and t4-t5 and removes t3-t4
  // and t5-t6, so that a path from t6 to t1 remains. Without t5, a path from t4 to t1 remains.
  struct Move {
    enum class Kind : std::uint8_t { none, two, two_twice, exchange, exchange_reversed };
    Kind kind = Kind::none;
    int t3 = -1, t4 = -1, t5 = -1, t6 = -1;
    Length open = 0;  // length that the path saves
    Length gain = 0;  // length that the closed tour saves
  };

  void begin(const std::vector<int>& tour);
  int at(int position) const { return tour_[static_cast<std::size_t>(position)]; }
  int position_of(int city) const { return position_[static_cast<std::size_t>(city)]; }
  int next(int city) const;
  int previous(int city) const;
  bool is_between(int from, int city, int to) const;
  void reverse_section(int from, int to);
  void reverse_path(int from, int to);
  void undo_to(std::size_t mark);
  void improve();
  bool improve_at(int city);
  bool chain(int t1);
  Move find_move(int t1, int t2, Length open) const;
  bool extend(const Move& two, int t1, int t2, Move& best) const;
  void make(int t2, const Move& move);
  void wait(int city);
  void bridge();
  std::uint64_t below(std::uint64_t count);

  std::vector<std::vector<int>> cities_at_;  // cities of each site; all other members use sites as cities
  std::vector<std::int32_t> between_sites_;  // empty: each city has a site of its own
  Distances distances_;
  int n_;
  Neighbours neighbours_;
  std::vector<int> tour_, position_;
  bool backwards_ = false;
  Length length_ = 0, gained_ = 0;
  std::vector<Reversal> log_;
  std::vector<int> queue_, touched_;
  std::vector<std::uint8_t> waits_;
  std::uint64_t random_;
};

}  // namespace elimina::tsp
