// Boxes in the plane that do not overlap. Two boxes are filtered once only one side remains (left, right, below or
// above) on which the first may lie beside the second. In addition, the boxes on a line along an axis have to fit one
// beside the other (Beldiceanu and Contejean, 1994).
#include <algorithm>
#include <array>
#include <memory>

#include "cp/constraint_call.hpp"

namespace elimina::cp {

namespace {

class Boxes final : public Propagator {
 public:
  Boxes(std::array<Views, 2> origins, std::array<Views, 2> sizes, Views presences, bool is_strict)
      : Propagator(Priority::quadratic), origins_(std::move(origins)), sizes_(std::move(sizes)),
        presences_(std::move(presences)), is_strict_(is_strict) {}

  void attach(Engine& engine) override {
    for (std::size_t i = 0; i < presences_.size(); ++i)
      for (const View x : {origins_[0][i], origins_[1][i], sizes_[0][i], sizes_[1][i], presences_[i]})
        engine.subscribe(*this, x, kBounds, static_cast<int>(i));
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    for (const Views& sizes : sizes_)
      for (const View x : sizes)
        if (!d.set_lo(x, 0)) return Outcome::failed;
    for (const int i : touched)
      for (std::size_t k = 0; k < presences_.size(); ++k)
        if (k != static_cast<std::size_t>(i) && !separate(d, static_cast<std::size_t>(i), k)) return Outcome::failed;
    return Outcome::again;
  }

 private:
  struct Side {
    std::size_t axis, first, second;
  };

  bool separate(Domains& d, std::size_t i, std::size_t k) {
    if (d.hi(presences_[i]) == 0 || d.hi(presences_[k]) == 0) return true;
    if (!is_strict_ && (may_vanish(d, i) || may_vanish(d, k))) return true;
    int count = 0;
    Side only{};
    for (const Side side : {Side{0, i, k}, Side{0, k, i}, Side{1, i, k}, Side{1, k, i}}) {
      if (!may_precede(d, side)) continue;
      if (++count > 1) return true;
      only = side;
    }
    const bool is_sure = d.lo(presences_[i]) == 1, is_other_sure = d.lo(presences_[k]) == 1;
    if (count == 0) {
      if (is_sure) return d.assign(presences_[k], 0);
      return !is_other_sure || d.assign(presences_[i], 0);
    }
    return !is_sure || !is_other_sure || order(d, only);
  }

  bool may_vanish(const Domains& d, std::size_t i) const { return d.lo(sizes_[0][i]) == 0 || d.lo(sizes_[1][i]) == 0; }

  bool may_precede(const Domains& d, const Side& side) const {
    const Views &origins = origins_[side.axis], &sizes = sizes_[side.axis];
    return d.lo(origins[side.first]) + d.lo(sizes[side.first]) <= d.hi(origins[side.second]);
  }

  bool order(Domains& d, const Side& side) const {
    const View origin = origins_[side.axis][side.first], size = sizes_[side.axis][side.first],
               next = origins_[side.axis][side.second];
    return d.set_lo(next, d.lo(origin) + d.lo(size)) && d.set_hi(origin, d.hi(next) - d.lo(size)) &&
           d.set_hi(size, d.hi(next) - d.lo(origin));
  }

  std::array<Views, 2> origins_, sizes_;
  Views presences_;
  bool is_strict_;
};

// Posts, for each axis, that all boxes on a line along this axis fit one beside the other between the ends of all
// boxes.
void post_crossings(ConstraintCall& call, const std::array<Views, 2>& origins, const std::array<Views, 2>& sizes) {
  const Domains& d = call.engine().domains();
  for (std::size_t axis = 0; axis < 2; ++axis) {
    Value first = kLimit, last = -kLimit;
    for (std::size_t i = 0; i < origins[axis].size(); ++i) {
      first = std::min(first, d.lo(origins[axis][i]));
      last = std::max(last, d.hi(origins[axis][i]) + d.hi(sizes[axis][i]));
    }
    if (last - first > kLimit) continue;
    post_shared_resource(call, origins[1 - axis], sizes[1 - axis], sizes[axis],
                         call.fixed(std::max<Value>(last - first, 0)));
  }
}

void post(ConstraintCall& call, bool is_strict) {
  for (std::size_t k = 1; k < 5; ++k) call.same_length(0, k);
  const std::array<Views, 2> origins{call.views(0), call.views(1)}, sizes{call.views(2), call.views(3)};
  const Views presences = call.booleans(4);
  const Domains& d = call.engine().domains();
  call.engine().post(std::make_unique<Boxes>(origins, sizes, presences, is_strict));
  const bool all_present =
      std::all_of(presences.begin(), presences.end(), [&](View present) { return d.lo(present) == 1; });
  if (all_present && presences.size() > 2) post_crossings(call, origins, sizes);
}

}  // namespace

// Post that boxes do not overlap. Arguments: origins on two axes, sizes on both axes, presences. Boxes without an area
// overlap nothing; in the strict form, they must not lie inside another box, either.
void post_boxes(ConstraintCall& call) { post(call, false); }
void post_strict_boxes(ConstraintCall& call) { post(call, true); }

}  // namespace elimina::cp
