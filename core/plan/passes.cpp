// Both passes over a bucket tree: messages towards the roots, messages back, and the requested marginals. Cliques are
// never stored: each message and each marginal is made from factors and incoming messages, so no division is needed and
// tables have the induced width, not one variable more.
#include <bit>
#include <compare>
#include <map>

#include "elimina/program.hpp"
#include "plan/steps.hpp"

namespace elimina::plan {
namespace {

// Largest number of tables with the same scope that several targets read without joining them first.
constexpr std::size_t kMostAlike = 8;

class Passes {
 public:
  Passes(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules)
      : tree_(tree), sizes_(sizes), factors_(int(scopes.size())), writer_(tree, scopes, sizes, rules),
        downward_(tree.size(), kNone), number_(sizes.size()) {
    marks_.resize(sizes.size());
    keep_.resize(sizes.size());
    upward_.reserve(tree.size());
    for (int number = 0; number < int(tree.size()); ++number) {
      chosen_.clear();
      writer_.add_factors(number, chosen_);
      for (const int child : tree.children[number]) chosen_.push_back(upward_[child]);
      upward_.push_back(writer_.eliminate(tree.variables[number], writer_.scope(tree.separators[number]), chosen_));
    }
  }

  Steps both(std::span<const int> wanted, const Lists& families) {
    wanted_ = wanted, families_ = &families;
    outward();
    Steps& steps = writer_.made();
    for (int number = 0; number < int(tree_.size()); ++number)
      if (tree_.parents[number] < 0) steps.outputs.push_back({upward_[number].source, -1});
    for (int n = 0; n < int(marginals_.size()); ++n)
      steps.outputs.push_back({marginals_[n], tree_.order[first_position(scope_of_marginal(n))]});
    return finished();
  }

  Steps joint() {
    Reads reads;
    for (int f = 0; f < factors_; ++f)
      if (is_kept(writer_.made().scopes[f])) reads.push_back({-1, f});
    for (int number = 0; number < int(tree_.size()); ++number)
      if (tree_.parents[number] < 0) reads.push_back(upward_[number]);
    std::vector<int> kept = tree_.kept;
    by_position(kept);
    const Read joined = writer_.eliminate(int(kJoin), writer_.scope(kept), reads);
    writer_.made().outputs.push_back({joined.source, -1});
    return finished();
  }

 private:
  using Reads = std::vector<Read>;
  // An output of a bucket: the message to a child, or (child -1) a marginal.
  struct Target {
    int child, marginal;
  };
  using Targets = std::span<const Target>;
  static constexpr Read kNone{-1, -1};

  Steps finished() {
    Steps& steps = writer_.made();
    steps.lasting.assign(steps.steps.size(), false);
    return std::move(steps);
  }

  bool is_kept_variable(int v) const { return tree_.position[v] >= int(tree_.order.size()); }
  bool is_kept(std::span<const int> scope) const {
    return std::all_of(scope.begin(), scope.end(), [&](int v) { return is_kept_variable(v); });
  }
  void by_position(std::vector<int>& scope) const {
    if (scope.size() < 2) return;
    std::sort(scope.begin(), scope.end(), [&](int a, int b) { return tree_.position[a] < tree_.position[b]; });
  }

  // Returns the scope of a marginal. Marginals of the requested variables have the first numbers, those of the families
  // the next ones.
  std::span<const int> scope_of_marginal(int number) const {
    const int variables = int(wanted_.size());
    return number < variables ? wanted_.subspan(std::size_t(number), 1) : (*families_)[number - variables];
  }
  int first_position(std::span<const int> scope) const {
    int first = tree_.position[scope.front()];
    for (const int v : scope) first = std::min(first, tree_.position[v]);
    return first;
  }

  // Writes the downward pass, as far as marginals need it. The joint marginal of a family is read in the bucket of the
  // family's first variable.
  void outward() {
    const std::vector<int> best = sites();
    const int variables = int(wanted_.size()), count = variables + int(families_->size());
    const auto site = [&](int n) { return n < variables ? best[wanted_[std::size_t(n)]] : -1; };
    marginals_.assign(std::size_t(count), -1);
    next_in_bucket_.assign(std::size_t(count), -1);
    std::vector<char> listens(tree_.size());
    std::vector<int> first_in_bucket(tree_.size(), -1);
    for (int n = count - 1; n >= 0; --n) {
      int number = site(n);
      if (number < 0) {
        number = first_position(scope_of_marginal(n));
        next_in_bucket_[n] = first_in_bucket[number];
        first_in_bucket[number] = n;
      }
      for (; !listens[number] && tree_.parents[number] >= 0; number = tree_.parents[number]) listens[number] = true;
    }
    for (int number = int(tree_.size()) - 1; number >= 0; --number) send(number, listens, first_in_bucket[number]);
    for (int n = 0; n < variables; ++n) {
      if (site(n) < 0) continue;
      live_.assign(1, upward_[site(n)]);
      if (downward_[site(n)] != kNone) live_.push_back(downward_[site(n)]);
      marginals_[n] = marginal(n, 0);
    }
  }

  // Returns, for each variable, the node at whose separator the marginal is read: the smallest separator with the
  // variable; -1: the variable's own bucket.
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

  void send(int number, const std::vector<char>& listens, int first_marginal) {
    live_.clear();
    writer_.add_factors(number, live_);
    if (downward_[number] != kNone) live_.push_back(downward_[number]);
    children_.assign(tree_.children[number].begin(), tree_.children[number].end());
    std::sort(children_.begin(), children_.end(), [&](int a, int b) {
      const auto first = tree_.separators[a], other = tree_.separators[b];
      const auto difference =
          std::lexicographical_compare_three_way(first.begin(), first.end(), other.begin(), other.end());
      return difference != 0 ? difference < 0 : a < b;
    });
    targets_.clear();
    for (const int child : children_) {
      if (listens[child]) {
        targets_.push_back({child, -1});
      } else {
        live_.push_back(upward_[child]);
      }
    }
    for (int n = first_marginal; n >= 0; n = next_in_bucket_[n]) targets_.push_back({-1, n});
    if (!targets_.empty()) distribute(0, targets_);
  }

  // Sends each target the product of two kinds of tables: those on the stack at `first` and above, and the messages of
  // all other targets. Each half of the targets gets the messages of the other half, contracted to the variables that
  // it keeps.
  void distribute(std::size_t first, Targets targets) {
    if (targets.size() == 1) {
      const auto [child, number] = targets.front();
      if (child < 0) {
        marginals_[number] = marginal(number, first);
      } else {
        contract(first, targets, true);
        if (live_.size() > first) downward_[child] = live_[first];
      }
      return;
    }
    const std::size_t middle = targets.size() / 2;
    distribute_half(first, targets.first(middle), targets.subspan(middle));
    distribute_half(first, targets.subspan(middle), targets.first(middle));
  }

  void distribute_half(std::size_t first, Targets near, Targets far) {
    const std::size_t end = live_.size();
    for (std::size_t i = first; i < end; ++i) live_.push_back(Read(live_[i]));
    for (const Target& target : far)
      if (target.child >= 0) live_.push_back(upward_[target.child]);
    if (near.size() > 1) contract(end, near, false);
    distribute(end, near);
    live_.resize(end);
  }

  // Writes a marginal in a step of its own, because an answer must not be a factor or a message; returns the step.
  int marginal(int number, std::size_t first) {
    const std::size_t before = writer_.made().steps.size();
    const Target target{-1, number};
    const auto scope = scope_of_marginal(number);
    contract(first, {&target, 1}, true);
    const auto has = [&](int v) { return writer_.has(live_[first], v); };
    if (writer_.made().steps.size() > before && live_.size() > first && std::all_of(scope.begin(), scope.end(), has))
      return live_[first].source;
    chosen_.assign(live_.begin() + std::ptrdiff_t(first), live_.end());
    std::vector<int> axes = writer_.variables_of_all(chosen_);
    for (const int v : scope)
      if (std::find(axes.begin(), axes.end(), v) == axes.end()) axes.push_back(v);
    by_position(axes);
    return writer_.eliminate(int(kJoin), writer_.scope(axes), chosen_).source;
  }

  // Eliminates the variables that no target keeps from the tables on the stack at `first` and above, always the one
  // with the cheapest bucket next. `whole`: leaves at most one table.
  void contract(std::size_t first, Targets targets, bool whole) {
    list_variables(first, targets);
    while (!gone_.empty()) {
      const int variable = cheapest();
      gone_.erase(std::find(gone_.begin(), gone_.end(), variable));
      eliminate(first, variable, whole && gone_.empty());
    }
    if (!whole) return join_alike(first);
    if (live_.size() > first + 1) {
      chosen_.assign(live_.begin() + std::ptrdiff_t(first), live_.end());
      live_.resize(first);
      live_.push_back(writer_.eliminate(int(kJoin), writer_.scope_of_all(chosen_), chosen_));
    }
  }

  // Numbers the variables of the tables, lists those that no target keeps, and writes the tables' scopes as sets.
  void list_variables(std::size_t first, Targets targets) {
    keep_.clear();
    for (const Target& target : targets) {
      if (target.child < 0) {
        for (const int v : scope_of_marginal(target.marginal)) keep_.add(v);
      } else {
        for (const int v : tree_.separators[target.child]) keep_.add(v);
      }
    }
    variables_.clear(), gone_.clear();
    marks_.clear();
    for (std::size_t i = first; i < live_.size(); ++i)
      for (const int v : writer_.scope_of(live_[i]))
        if (marks_.add(v)) variables_.push_back(v);
    by_position(variables_);
    for (int number = 0; number < int(variables_.size()); ++number) {
      const int v = variables_[number];
      number_[v] = number;
      if (!keep_.has(v) && !is_kept_variable(v)) gone_.push_back(number);
    }
    if (gone_.empty()) return;
    words_ = variables_.size() / 64 + 1;
    sets_.assign((live_.size() - first) * words_, 0);
    for (std::size_t i = first; i < live_.size(); ++i)
      for (const int v : writer_.scope_of(live_[i])) set(i - first)[number_[v] / 64] |= u64{1} << (number_[v] % 64);
  }

  u64* set(std::size_t table) { return sets_.data() + table * words_; }
  static bool has(const u64* set, int variable) { return set[variable / 64] >> (variable % 64) & 1; }

  // Sets `bucket_` to the union of the sets that contain a variable.
  void find_bucket(int variable) {
    bucket_.assign(words_, 0);
    for (const u64* set = sets_.data(); set != sets_.data() + sets_.size(); set += words_)
      if (has(set, variable))
        for (std::size_t word = 0; word < words_; ++word) bucket_[word] |= set[word];
  }

  template <class Visit>
  void visit_bucket(Visit visit) const {
    for (std::size_t word = 0; word < words_; ++word)
      for (u64 bits = bucket_[word]; bits; bits &= bits - 1)
        visit(variables_[word * 64 + std::size_t(std::countr_zero(bits))]);
  }

  // Returns the variable whose bucket has the fewest cells; of several, the one with the most values, then the
  // earliest.
  int cheapest() {
    if (gone_.size() == 1) return gone_.front();
    int best = -1;
    i64 fewest = 0;
    for (const int v : gone_) {
      find_bucket(v);
      i64 cells = 1;
      visit_bucket([&](int u) { cells = times(cells, sizes_[u]); });
      if (best < 0 || cells < fewest || (cells == fewest && sizes_[variables_[v]] > sizes_[variables_[best]]))
        best = v, fewest = cells;
    }
    return best;
  }

  // Eliminates a variable from the tables on the stack at `first` and above. `with_parts`: tables without the variable
  // are joined with those of its bucket if the bucket contains their scopes.
  void eliminate(std::size_t first, int variable, bool with_parts) {
    find_bucket(variable);
    bucket_[variable / 64] &= ~(u64{1} << (variable % 64));
    const auto is_chosen = [&](const u64* set) {
      if (has(set, variable)) return true;
      bool is_part = with_parts;
      for (std::size_t word = 0; word < words_; ++word) is_part = is_part && !(set[word] & ~bucket_[word]);
      return is_part;
    };
    chosen_.clear();
    std::size_t remaining = 0;
    for (std::size_t table = 0; first + table < live_.size(); ++table) {
      if (is_chosen(set(table))) {
        chosen_.push_back(live_[first + table]);
      } else {
        live_[first + remaining] = live_[first + table];
        std::copy_n(set(table), words_, set(remaining++));
      }
    }
    live_.resize(first + remaining);
    sets_.resize(remaining * words_);
    sets_.insert(sets_.end(), bucket_.begin(), bucket_.end());
    axes_.clear();
    visit_bucket([&](int v) { axes_.push_back(v); });
    live_.push_back(writer_.eliminate(variables_[variable], writer_.scope(axes_), chosen_));
  }

  // Joins tables of equal scope if there are more than `kMostAlike`, because each of several targets would read all of
  // them.
  void join_alike(std::size_t first) {
    if (live_.size() - first <= kMostAlike) return;
    std::map<std::vector<int>, std::size_t> group_of;
    std::vector<Reads> groups;  // in the order of their first tables
    for (std::size_t i = first; i < live_.size(); ++i) {
      const auto scope = writer_.scope_of(live_[i]);
      const auto [at, is_new] = group_of.try_emplace({scope.begin(), scope.end()}, groups.size());
      if (is_new) groups.emplace_back();
      groups[at->second].push_back(live_[i]);
    }
    live_.resize(first);
    for (Reads& alike : groups) {
      const int scope = alike.front().scope;
      if (alike.size() > kMostAlike) alike = {writer_.eliminate(int(kJoin), scope, alike)};
      live_.insert(live_.end(), alike.begin(), alike.end());
    }
  }

  const Tree& tree_;
  std::span<const i64> sizes_;
  int factors_;
  Writer writer_;
  Reads upward_, downward_;  // step of each node's message; kNone: no message
  std::span<const int> wanted_;
  const Lists* families_ = nullptr;
  std::vector<int> marginals_;       // step of each marginal
  std::vector<int> next_in_bucket_;  // next marginal of the same bucket; -1: none
  Reads live_;                       // stack of tables that are being contracted; nested calls use its top
  Reads chosen_;                     // tables of the current step
  std::vector<int> children_;
  std::vector<Target> targets_;
  // `variables_`: all variables of the tables that are being contracted. `gone_`: positions in `variables_` of those
  // that are still to be eliminated. `axes_`: variables of the table that is being made.
  std::vector<int> variables_, gone_, axes_;
  std::vector<int> number_;
  std::size_t words_ = 1;  // number of words of a set
  std::vector<u64> sets_, bucket_;
  Marks marks_, keep_;
};

}  // namespace

Steps both_passes(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules,
                  std::span<const int> wanted, const Lists& families) {
  return Passes(tree, scopes, sizes, rules).both(wanted, families);
}

Steps joint_steps(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules) {
  return Passes(tree, scopes, sizes, rules).joint();
}

}  // namespace elimina::plan
