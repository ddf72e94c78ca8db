#include "counted.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>

#include "stop.hpp"

namespace elimina::consistency {

namespace {

// Smallest number of variables of a function whose table is replaced by a table of counts; smaller tables are read
// directly.
constexpr int least_counted = 5;

// Largest number of members of a clique: positions are bits of a word.
constexpr std::size_t most_members = 64;

// Largest number of values that a clique is chosen from, and of steps to choose all cliques (about half a second).
constexpr std::size_t most_candidates = 512, most_choices = std::size_t{1} << 28;

// A value x of a two-valued variable v, as the number 2 v + x.
using Literal = int;

// True if the costs of (0, 1) and (1, 0) for the first variable and that at position `p` are always equal; with
// `is_opposite`, those of (0, 0) and (1, 1).
bool is_exchangeable(const Function& f, int p, bool is_opposite) {
  const std::size_t first = f.stride[0], other = f.stride[p], both = first + other;
  for (std::size_t cell = 0; cell < f.cost.size(); ++cell) {
    if ((cell & both) != 0) continue;
    if (is_opposite ? f.cost[cell] != f.cost[cell + both] : f.cost[cell + first] != f.cost[cell + other]) return false;
  }
  return true;
}

// Returns a function of the number of literals that hold.
Function function_of(const std::vector<Literal>& literals, std::vector<Cost> costs) {
  Function f;
  f.is_counted = true;
  f.cost = std::move(costs);
  f.max_count = f.cost.size() - 1;
  while (f.max_count > 0 && f.cost[f.max_count] >= forbidden) --f.max_count;
  for (const Literal literal : literals) {
    f.scope.push_back(literal / 2);
    f.stride.push_back(literal % 2 == 1 ? 1 : ~std::size_t{0});
    f.base += literal % 2 == 0;
  }
  return f;
}

bool is_at_most_one(const Function& f) { return f.is_counted && f.max_count <= 1; }

// Returns the only pair of values that a function of two two-valued variables forbids; nullopt for other functions.
std::optional<std::pair<Literal, Literal>> forbidden_pair(const network::Function& f, const std::vector<int>& size) {
  if (f.arity() != 2 || size[f.scope[0]] != 2 || size[f.scope[1]] != 2) return std::nullopt;
  const auto is_forbidden = [](Cost cost) { return cost >= network::forbidden; };
  if (std::count_if(f.cost.begin(), f.cost.end(), is_forbidden) != 1) return std::nullopt;
  const auto cell = std::find_if(f.cost.begin(), f.cost.end(), is_forbidden) - f.cost.begin();
  return std::pair{2 * f.scope[0] + static_cast<Literal>(cell / 2), 2 * f.scope[1] + static_cast<Literal>(cell % 2)};
}

// Returns the pair of `forbidden_pair`; nullopt if another pair of values has a cost.
std::optional<std::pair<Literal, Literal>> only_pair(const network::Function& f, const std::vector<int>& size) {
  return std::count(f.cost.begin(), f.cost.end(), 0) == 3 ? forbidden_pair(f, size) : std::nullopt;
}

// Pairs of values that exclude each other, covered by cliques.
class Cover {
 public:
  explicit Cover(std::size_t literals) : others_(literals), is_covered_(literals) {}

  void add(Literal a, Literal b) {
    others_[a].push_back(b);
    others_[b].push_back(a);
  }

  void sort() {
    for (std::size_t a = 0; a < others_.size(); ++a) {
      auto& others = others_[a];
      std::sort(others.begin(), others.end());
      others.erase(std::unique(others.begin(), others.end()), others.end());
      is_covered_[a].assign(others.size(), 0);
    }
  }

  bool is_covered(Literal a, Literal b) const { return is_covered_[a][index_of(a, b)]; }

  void cover(const std::vector<Literal>& clique) {
    for (const Literal a : clique)
      for (const Literal b : clique)
        if (a != b) is_covered_[a][index_of(a, b)] = 1;
  }

  // Returns a clique that contains the values a and b; just these two once the limit on steps is reached.
  std::vector<Literal> grow(Literal a, Literal b) {
    std::vector<Literal> clique{a, b}, candidates;
    if (steps_ >= most_choices) return clique;
    std::set_intersection(others_[a].begin(), others_[a].end(), others_[b].begin(), others_[b].end(),
                          std::back_inserter(candidates));
    if (candidates.size() > most_candidates) candidates.resize(most_candidates);
    const std::size_t count = candidates.size(), words = (count + 63) / 64;
    // Candidates in conflict with each candidate, as bits.
    std::vector<std::uint64_t> excluded(count * words, 0), remaining(words, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& others = others_[candidates[i]];
      remaining[i / 64] |= std::uint64_t{1} << (i % 64);
      std::size_t k = 0;
      for (const Literal other : others) {
        while (k < count && candidates[k] < other) ++k;
        if (k < count && candidates[k] == other) excluded[i * words + k / 64] |= std::uint64_t{1} << (k % 64);
      }
      steps_ += others.size() + count;
    }
    while (clique.size() < most_members) {
      // The next member is the candidate in conflict with the most other candidates: only these remain candidates
      // afterwards.
      int max_shared = -1;
      std::size_t best = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (!(remaining[i / 64] >> (i % 64) & 1)) continue;
        int shared = 0;
        for (std::size_t w = 0; w < words; ++w) shared += std::popcount(excluded[i * words + w] & remaining[w]);
        if (shared > max_shared) max_shared = shared, best = i;
      }
      if (max_shared < 0) break;
      clique.push_back(candidates[best]);
      for (std::size_t w = 0; w < words; ++w) remaining[w] &= excluded[best * words + w];
      steps_ += count * words;
    }
    return clique;
  }

 private:
  std::size_t index_of(Literal a, Literal b) const {
    return static_cast<std::size_t>(std::lower_bound(others_[a].begin(), others_[a].end(), b) - others_[a].begin());
  }

  std::vector<std::vector<Literal>> others_;
  std::vector<std::vector<char>> is_covered_;
  std::size_t steps_ = 0;
};

}  // namespace

bool is_packing(const network::Network& model) {
  const auto forbids_pair = [&](const network::Function& f) { return only_pair(f, model.size).has_value(); };
  return 2 * std::count_if(model.functions.begin(), model.functions.end(), forbids_pair) >
         static_cast<std::ptrdiff_t>(model.functions.size());
}

void count(Function& f, const std::vector<int>& size) {
  if (f.arity() < least_counted || std::any_of(f.scope.begin(), f.scope.end(), [&](Var v) { return size[v] != 2; }))
    return;
  std::vector<Literal> literals{2 * f.scope[0] + 1};
  for (int p = 1; p < f.arity(); ++p) {
    const bool is_opposite = !is_exchangeable(f, p, false);
    if (is_opposite && !is_exchangeable(f, p, true)) return;
    literals.push_back(2 * f.scope[p] + !is_opposite);
  }
  std::size_t cell = 0;
  for (int p = 0; p < f.arity(); ++p)
    if (literals[p] % 2 == 0) cell += f.stride[p];
  std::vector<Cost> costs{f.cost[cell]};
  for (int p = 0; p < f.arity(); ++p) {
    cell = literals[p] % 2 == 0 ? cell - f.stride[p] : cell + f.stride[p];
    costs.push_back(f.cost[cell]);
  }
  f = function_of(literals, std::move(costs));
}

void join_pairs(std::vector<Function>& functions, const std::vector<int>& size) {
  Cover cover(2 * size.size());
  std::vector<std::vector<Literal>> groups;
  for (const Function& f : functions) {
    if (const auto pair = forbidden_pair(f, size)) cover.add(pair->first, pair->second);
    if (!is_at_most_one(f)) continue;
    groups.emplace_back();
    for (int p = 0; p < f.arity(); ++p) groups.back().push_back(2 * f.scope[p] + (f.stride[p] == 1));
    for (const Literal a : groups.back())
      for (const Literal b : groups.back())
        if (a < b) cover.add(a, b);
  }
  cover.sort();
  for (const auto& clique : groups) cover.cover(clique);
  std::vector<Function> cliques;
  for (const Function& f : functions) {
    const auto pair = only_pair(f, size);
    if (!pair || cover.is_covered(pair->first, pair->second)) continue;
    check_stop();
    const auto clique = cover.grow(pair->first, pair->second);
    if (clique.size() < 3) continue;
    cover.cover(clique);
    std::vector<Cost> costs(clique.size() + 1, forbidden);
    costs[0] = costs[1] = 0;
    cliques.push_back(function_of(clique, std::move(costs)));
  }
  std::erase_if(functions, [&](const Function& f) {
    const auto pair = only_pair(f, size);
    return pair && cover.is_covered(pair->first, pair->second);
  });
  std::move(cliques.begin(), cliques.end(), std::back_inserter(functions));
}

}  // namespace elimina::consistency
