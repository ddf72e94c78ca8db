// Both passes over a bucket tree: messages towards the roots, messages back, and the wanted marginals. Cliques are never stored: every
// message and every marginal is made from factors and incoming messages, so no division is needed and tables have the induced width,
// not one more.
#include <map>

#include "elimina/program.hpp"
#include "plan/steps.hpp"

namespace elimina::plan {
namespace {

constexpr std::size_t kMostAlike = 8;  // tables of one scope that several targets read one by one

class Passes {
 public:
  Passes(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules)
      : tree_(tree), sizes_(sizes), factors_(int(scopes.size())), writer_(tree, scopes, sizes, rules), downward_(tree.size()), marginals_(sizes.size(), -1) {
    marks_.resize(sizes.size());
    for (int number = 0; number < int(tree.size()); ++number) {
      Reads reads = factors_of(number);
      for (const int child : tree.children[number]) reads.push_back(upward_[child]);
      upward_.push_back(writer_.eliminate(tree.variables[number], writer_.scope(tree.separators[number]), std::move(reads)));
    }
  }

  Steps both(std::span<const int> wanted) {
    outward(wanted);
    Steps& made = writer_.made();
    for (int number = 0; number < int(tree_.size()); ++number)
      if (tree_.parents[number] < 0) made.outputs.push_back({upward_[number].source, -1});
    for (const int v : wanted) made.outputs.push_back({marginals_[v], v});
    return finished();
  }

  Steps joint() {
    Reads reads;
    for (int f = 0; f < factors_; ++f)
      if (is_kept(writer_.made().scopes[f])) reads.push_back({f, -1, f});
    for (int number = 0; number < int(tree_.size()); ++number)
      if (tree_.parents[number] < 0) reads.push_back(upward_[number]);
    std::vector<int> kept = tree_.kept;
    by_position(kept);
    const Read joined = writer_.eliminate(int(kJoin), writer_.scope(kept), std::move(reads));
    writer_.made().outputs.push_back({joined.source, -1});
    return finished();
  }

 private:
  using Reads = std::vector<Read>;
  // Something that a bucket sends away: the scope that is kept, the child's own message, and the child (-1: the bucket's marginal).
  struct Target {
    std::vector<int> keep;
    Reads own;
    int child;
  };
  using Targets = std::span<const Target>;

  Steps finished() {
    Steps& made = writer_.made();
    made.lasting.assign(made.steps.size(), false);
    return std::move(made);
  }

  Reads factors_of(int number) const {
    Reads reads;
    for (const int f : tree_.factors[number]) reads.push_back({f, -1, f});
    return reads;
  }

  bool is_kept_variable(int v) const { return tree_.position[v] >= int(tree_.order.size()); }
  bool is_kept(std::span<const int> scope) const {
    return std::all_of(scope.begin(), scope.end(), [&](int v) { return is_kept_variable(v); });
  }
  void by_position(std::vector<int>& scope) const {
    std::sort(scope.begin(), scope.end(), [&](int a, int b) { return tree_.position[a] < tree_.position[b]; });
  }

  // The downward pass, as far as the wanted variables need it.
  void outward(std::span<const int> wanted) {
    const std::vector<int> best = sites();
    std::vector<char> listens(tree_.size()), own(tree_.size());
    for (const int v : wanted) {
      int number = best[v] >= 0 ? best[v] : tree_.position[v];
      own[number] |= best[v] < 0;
      for (; !listens[number] && tree_.parents[number] >= 0; number = tree_.parents[number]) listens[number] = true;
    }
    for (int number = int(tree_.size()) - 1; number >= 0; --number) send(number, listens, own[number]);
    for (const int v : wanted) {
      if (best[v] < 0) continue;
      Reads reads{upward_[best[v]]};
      reads.insert(reads.end(), downward_[best[v]].begin(), downward_[best[v]].end());
      marginals_[v] = marginal(v, std::move(reads));
    }
  }

  // Node from which each marginal is read: at the smallest separator with the variable; -1: in its own bucket.
  std::vector<int> sites() const {
    std::vector<int> best(sizes_.size(), -1);
    std::vector<i64> fewest(sizes_.size(), 0);
    for (int number = 0; number < int(tree_.size()); ++number) {
      const i64 cells = writer_.cells(tree_.separators[number]);
      for (const int v : tree_.separators[number])
        if (!is_kept_variable(v) && (best[v] < 0 || cells < fewest[v])) best[v] = number, fewest[v] = cells;
    }
    return best;
  }

  void send(int number, const std::vector<char>& listens, bool own) {
    Reads common = factors_of(number);
    common.insert(common.end(), downward_[number].begin(), downward_[number].end());
    std::vector<int> children(tree_.children[number].begin(), tree_.children[number].end());
    std::stable_sort(children.begin(), children.end(), [&](int a, int b) {
      const auto one = tree_.separators[a], other = tree_.separators[b];
      return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end());
    });
    std::vector<Target> targets;
    for (const int child : children) {
      const auto scope = writer_.scope_of(upward_[child]);
      if (listens[child]) {
        targets.push_back({{scope.begin(), scope.end()}, {upward_[child]}, child});
      } else {
        common.push_back(upward_[child]);
      }
    }
    const int variable = tree_.variables[number];
    if (own) targets.push_back({{variable}, {}, -1});
    if (!targets.empty()) distribute(variable, common, targets);
  }

  // Sends each target the product of all messages but its own. Each half of the targets gets the other half as one product.
  void distribute(int variable, const Reads& common, Targets targets) {
    if (targets.size() == 1) {
      const Target& target = targets.front();
      if (target.child < 0) {
        marginals_[variable] = marginal(variable, common);
      } else {
        downward_[target.child] = contract(common, target.keep, true);
      }
      return;
    }
    const std::size_t middle = targets.size() / 2;
    distribute_half(variable, common, targets.first(middle), targets.subspan(middle));
    distribute_half(variable, common, targets.subspan(middle), targets.first(middle));
  }

  void distribute_half(int variable, Reads known, Targets near, Targets far) {
    for (const Target& target : far) known.insert(known.end(), target.own.begin(), target.own.end());
    if (near.size() > 1) {
      std::vector<int> keep;
      for (const Target& target : near) keep.insert(keep.end(), target.keep.begin(), target.keep.end());
      known = contract(std::move(known), keep, false);
    }
    distribute(variable, known, near);
  }

  // A step of its own, since what is read off must not be a factor or a message.
  int marginal(int variable, Reads reads) {
    const std::size_t before = writer_.made().steps.size();
    Reads found = contract(std::move(reads), {variable}, true);
    if (writer_.made().steps.size() > before && !found.empty()) {
      const auto scope = writer_.scope_of(found.front());
      if (std::find(scope.begin(), scope.end(), variable) != scope.end()) return found.front().source;
    }
    std::vector<int> axes = writer_.scope_of_all(found);
    if (std::find(axes.begin(), axes.end(), variable) == axes.end()) axes.push_back(variable);
    by_position(axes);
    return writer_.eliminate(int(kJoin), writer_.scope(axes), std::move(found)).source;
  }

  // Eliminates what is not kept, the cheapest bucket first; `whole`: leaves at most one table.
  Reads contract(Reads live, const std::vector<int>& keep, bool whole) {
    marks_.clear();
    for (const int v : keep) marks_.add(v);
    std::vector<int> gone;
    for (const int v : writer_.scope_of_all(live))
      if (!marks_.has(v) && !is_kept_variable(v)) gone.push_back(v);
    while (!gone.empty()) {
      const int variable = cheapest(live, gone);
      std::erase(gone, variable);
      const bool is_last = whole && gone.empty();
      const std::vector<int> axes = rest_of_bucket(live, variable);
      marks_.clear();
      marks_.add(variable);
      for (const int v : axes) marks_.add(v);
      Reads chosen, others;
      for (const Read& read : live) {
        const auto scope = writer_.scope_of(read);
        const bool has = std::find(scope.begin(), scope.end(), variable) != scope.end();
        const bool within = is_last && std::all_of(scope.begin(), scope.end(), [&](int v) { return marks_.has(v); });
        (has || within ? chosen : others).push_back(read);
      }
      live = std::move(others);
      live.push_back(writer_.eliminate(variable, writer_.scope(axes), std::move(chosen)));
    }
    if (!whole) return join_alike(std::move(live));
    if (live.size() > 1) {
      const int scope = writer_.scope(writer_.scope_of_all(live));
      live = {writer_.eliminate(int(kJoin), scope, std::move(live))};
    }
    return live;
  }

  // Joins tables of one scope if they are many, for each of several targets would read them all.
  Reads join_alike(Reads reads) {
    if (reads.size() <= kMostAlike) return reads;
    std::map<std::vector<int>, std::size_t> places;
    std::vector<Reads> groups;  // in the sequence in which their scopes were met
    for (const Read& read : reads) {
      const auto scope = writer_.scope_of(read);
      const auto [at, is_new] = places.try_emplace({scope.begin(), scope.end()}, groups.size());
      if (is_new) groups.emplace_back();
      groups[at->second].push_back(read);
    }
    reads.clear();
    for (Reads& alike : groups) {
      const int scope = alike.front().scope;
      if (alike.size() > kMostAlike) alike = {writer_.eliminate(int(kJoin), scope, std::move(alike))};
      reads.insert(reads.end(), alike.begin(), alike.end());
    }
    return reads;
  }

  // The variables of the tables that have one, without it.
  std::vector<int> rest_of_bucket(const Reads& live, int variable) {
    Reads chosen;
    for (const Read& read : live) {
      const auto scope = writer_.scope_of(read);
      if (std::find(scope.begin(), scope.end(), variable) != scope.end()) chosen.push_back(read);
    }
    return writer_.scope_of_all(chosen, variable);
  }

  // By the cells of its bucket; of equals the one with most values, then the first one of the order.
  int cheapest(const Reads& live, const std::vector<int>& gone) {
    if (gone.size() == 1) return gone.front();
    int best = -1;
    i64 fewest = 0;
    for (const int v : gone) {
      const i64 cells = times(writer_.cells(rest_of_bucket(live, v)), sizes_[v]);
      if (best < 0 || cells < fewest || (cells == fewest && sizes_[v] > sizes_[best])) best = v, fewest = cells;
    }
    return best;
  }

  const Tree& tree_;
  std::span<const i64> sizes_;
  int factors_;
  Writer writer_;
  Reads upward_;
  std::vector<Reads> downward_;
  std::vector<int> marginals_;
  Marks marks_;
};

}  // namespace

Steps both_passes(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules, std::span<const int> wanted) {
  return Passes(tree, scopes, sizes, rules).both(wanted);
}

Steps joint_steps(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules) {
  return Passes(tree, scopes, sizes, rules).joint();
}

}  // namespace elimina::plan
