// Disjoint sets of variables that are views of each other: x = scale * y + offset with a scale of 1 or -1. A set is
// represented by its root: `find` returns each variable as a view of the root.
#pragma once
#include <cstdint>
#include <numeric>
#include <vector>

#include "cp/types.hpp"

namespace elimina::cp::flatzinc {

class DisjointSets {
 public:
  explicit DisjointSets(std::size_t count) {
    for (std::size_t v = 0; v < count; ++v) links_.push_back({static_cast<std::int32_t>(v)});
  }

  // Returns `v` as a view of the root of its set.
  View find(std::int32_t v) {
    View x = links_[static_cast<std::size_t>(v)];
    if (x.var == v) return x;
    path_.clear();
    for (; links_[static_cast<std::size_t>(v)].var != v; v = links_[static_cast<std::size_t>(v)].var)
      path_.push_back(v);
    View up{v};
    for (std::size_t i = path_.size(); i-- > 0;) {
      View& link = links_[static_cast<std::size_t>(path_[i])];
      up = link = compose(link, up);
    }
    return up;
  }

  // Adds x = scale * y + offset. Returns false, without a change, if both are in one set already, or if the offset
  // between the roots is too large.
  bool join(std::int32_t x, std::int32_t y, std::int32_t scale, Value offset) {
    constexpr Value kFarthest = Value{1} << 36;
    const View a = find(x), b = compose({y, scale, offset}, find(y));
    if (a.var == b.var) return false;
    // The equation is a.scale * r + a.offset = b, where r is the root of x. The link is this equation solved for r;
    // both scales are 1 or -1.
    const View link{b.var, a.scale * b.scale, a.scale * (b.offset - a.offset)};
    if (link.offset > kFarthest || link.offset < -kFarthest) return false;
    links_[static_cast<std::size_t>(a.var)] = link;
    return true;
  }

 private:
  // Returns the composition of two views: `outer` is a view of a variable that is itself the view `inner` of another
  // variable.
  static View compose(View outer, View inner) {
    return {inner.var, outer.scale * inner.scale, outer.scale * inner.offset + outer.offset};
  }

  std::vector<View> links_;
  std::vector<std::int32_t> path_;
};

}  // namespace elimina::cp::flatzinc
