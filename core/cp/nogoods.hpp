// Nogoods keep a search from entering refuted parts again after a restart (Lecoutre, Sais, Tabary and Vidal, JSAT
// 2007). One propagator handles the nogoods of a branch together (Lee, Schulte and Zhu, AAAI 2016).
#pragma once
#include <vector>

#include "branching.hpp"

namespace elimina::cp {

// A decision, taken or refuted under the decisions before it.
struct Step {
  Decision decision;
  bool refuted;
};

class Nogoods final : public Propagator {
 public:
  Nogoods() : Propagator(Priority::linear) {}

  void attach(Engine&) override {}

  // Adds a branch, earliest steps first; call it on the level where the search begins.
  void add(Engine& engine, std::vector<Step> branch);
  // Removes all nogoods. Call it before the level where the search begins is undone.
  void clear();

  Outcome propagate(Engine& engine) override;

 private:
  struct Branch {
    std::size_t steps;  // position of the first step
    std::size_t end;
    std::size_t at;  // trailed position of the first decision that does not hold yet; the end if the branch is done
  };
  struct Watch {
    std::size_t branch, step;
  };

  [[nodiscard]] bool revise(Engine& engine, const Branch& branch);
  [[nodiscard]] bool look_ahead(Engine& engine, const Branch& branch, std::size_t first);
  void watch(const Branch& branch, std::size_t step);
  std::size_t number(const Branch& branch) const { return static_cast<std::size_t>(&branch - branches_.data()); }

  std::vector<Step> steps_;
  std::vector<Branch> branches_;
  std::vector<std::vector<Watch>> watches_;  // watches of each variable
  std::vector<std::uint8_t> is_watched_;     // for each step, true if it is watched
  std::vector<std::uint8_t> is_subscribed_;  // for each variable, true if it is subscribed to
  std::size_t seen_ = 0;                     // branches before this one have been revised
};

}  // namespace elimina::cp
