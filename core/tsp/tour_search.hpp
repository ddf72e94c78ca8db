// Tours by iterated local search: Lin and Kernighan's steps (Operations Research 21, 1973) as reversals of an array, over the
// nearest neighbours, and double bridges between places that are close (Applegate, Cook and Rohe, INFORMS J. Computing 15, 2003).
#pragma once
#include <cstdint>
#include <vector>

#include "distances.hpp"

namespace elimina::tsp {

class TourSearch {
 public:
  // Of at least three cities.
  TourSearch(Distances distances, std::uint64_t seed);

  // Makes so many double bridges, each of which is repaired, and undone if the tour is longer then.
  void kick(std::uint64_t count);
  // Goes on from another tour.
  void start(const std::vector<int>& tour);

  Length length() const { return length_; }
  const std::vector<int>& tour() const { return tour_; }
  const std::vector<int>& neighbours() const { return neighbours_; }
  int neighbours_each() const { return each_; }

 private:
  struct Reversal {
    int from, to;  // places
  };
  // A step's new edge, from the end of the path to `city`; `before` is then the path's end.
  struct Candidate {
    Length value;
    int city, before;
  };

  void find_neighbours();
  std::vector<int> nearest_first() const;
  int at(int place) const { return tour_[static_cast<std::size_t>(place)]; }
  int next(int city) const;
  int previous(int city) const;
  void reverse_places(int from, int to);
  void reverse_path(int from, int to);
  void undo_to(std::size_t mark);
  void improve();
  bool improve_at(int city);
  bool extend(int fixed, int end, Length open, int depth);
  void find_candidates(int fixed, int end, Length open, std::vector<Candidate>& found) const;
  void wait(int city);
  void bridge();
  std::uint64_t below(std::uint64_t count);

  Distances distances_;
  int n_, each_;
  std::vector<int> neighbours_, tour_, place_;
  bool backwards_ = false;
  Length length_ = 0, gained_ = 0;
  std::vector<Reversal> log_;
  std::vector<int> queue_;
  std::vector<std::uint8_t> waits_;
  std::vector<std::vector<Candidate>> candidates_;  // by depth
  std::uint64_t random_;
};

}  // namespace elimina::tsp
