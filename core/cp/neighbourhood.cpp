#include "neighbourhood.hpp"

#include <algorithm>
#include <cmath>

namespace elimina::cp {

namespace {

double bits(const Domains& d, View x) { return std::log2(static_cast<double>(d.size(x))); }

// Fixes a variable to its value in `best` on a new level, and propagates. If that fails, undoes the level and returns
// false.
bool keep(Engine& engine, View x, const Values& best) {
  const Value value = best[static_cast<std::size_t>(x.var)];
  if (!engine.domains().has(x.var, value)) return false;
  engine.mark();
  if (engine.domains().assign(x.var, value) && engine.propagate()) return true;
  engine.undo();
  return false;
}

}  // namespace

void Neighbourhood::fix(Engine& engine, const Values& best, Random& random) {
  if (relaxation_.kept) return fix_share(engine, best, random);
  constexpr std::size_t kGuided = 2000;  // largest number of variables for guided steps, which visit all
  fix_until_small(engine, best, random, relaxation_.xs.size() <= kGuided && random.below(2) == 0);
}

void Neighbourhood::widen() { free_ = std::min(free_ * 1.1, 1.0); }
void Neighbourhood::narrow() { free_ = std::max(free_ * 0.95, 1e-3); }

void Neighbourhood::fix_share(Engine& engine, const Values& best, Random& random) {
  constexpr std::uint64_t kParts = 1 << 20;
  const auto kept = static_cast<std::uint64_t>(*relaxation_.kept * static_cast<double>(kParts));
  for (const View x : relaxation_.xs) {
    if (random.below(kParts) >= kept || engine.domains().fixed(x)) continue;
    keep(engine, x, best);
    if (engine.stopped()) return;
  }
}

// Fixes variables until the domains are small enough: in random order, or (`guided`) first those whose domains have
// shrunk most by propagation (Perron, Shaw and Furnon, CP 2004).
void Neighbourhood::fix_until_small(Engine& engine, const Values& best, Random& random, bool guided) {
  const Domains& d = engine.domains();
  std::vector<std::size_t> open;
  std::vector<double> sizes;
  for (std::size_t i = 0; i < relaxation_.xs.size(); ++i) {
    open.push_back(i);
    sizes.push_back(bits(d, relaxation_.xs[i]));
  }
  const double enough = free_ * total(d);
  while (!open.empty() && total(d) > enough && !engine.stopped()) {
    // Adding up all domain sizes takes long, so several variables are fixed before sizes are added up again.
    for (std::size_t steps = 1 + open.size() / 32; steps-- > 0 && !open.empty() && !engine.stopped();) {
      const std::size_t affected = guided ? most_affected(d, sizes, open) : open.size();
      const std::size_t k = affected < open.size() ? affected : random.below(open.size());
      const View x = relaxation_.xs[open[k]];
      std::swap(open[k], open.back());
      open.pop_back();
      if (!d.fixed(x)) keep(engine, x, best);
    }
  }
}

// Returns the position in `open` of the variable whose domain has shrunk most; the size of `open` if none has.
std::size_t Neighbourhood::most_affected(const Domains& d, const std::vector<double>& sizes,
                                         const std::vector<std::size_t>& open) const {
  std::size_t result = open.size();
  double largest_change = 0;
  for (std::size_t k = 0; k < open.size(); ++k) {
    const View x = relaxation_.xs[open[k]];
    const double now = bits(d, x), change = sizes[open[k]] - now;
    if (d.fixed(x) || change <= largest_change) continue;
    largest_change = change;
    result = k;
  }
  return result;
}

double Neighbourhood::total(const Domains& d) const {
  double sum = 0;
  for (const View x : relaxation_.xs) sum += bits(d, x);
  return sum;
}

}  // namespace elimina::cp
