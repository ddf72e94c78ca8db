// Lower bounds on the rest of the problem for a step on tuples, by mini-buckets over the same tree (mini-bucket tree
// elimination: Mateescu, Dechter and Kask, AAAI 2002). One pass towards the roots bounds each bucket's message from below, one back
// bounds all that is outside its subtree.
#include "elimina/program.hpp"
#include "plan/steps.hpp"

namespace elimina::plan {
namespace {

class Bounds {
 public:
  Bounds(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, int tables, i64 cells)
      : tree_(tree), sizes_(sizes), most_cells_(cells), writer_(tree, scopes, sizes, {tables}), up_(tree.size()), down_(tree.size()) {
    marks_.resize(sizes.size());
  }

  RowBounds run() {
    for (int number = 0; number < int(tree_.size()); ++number) {
      Reads reads = factors_of(number);
      for (const int child : tree_.children[number]) reads.insert(reads.end(), up_[child].begin(), up_[child].end());
      up_[number] = eliminate(reads, tree_.variables[number]);
    }
    for (int number = int(tree_.size()) - 1; number >= 0; --number) {
      Reads known = factors_of(number);
      known.insert(known.end(), down_[number].begin(), down_[number].end());
      for (const int child : tree_.children[number]) {
        Reads reads = known;
        for (const int other : tree_.children[number])
          if (other != child) reads.insert(reads.end(), up_[other].begin(), up_[other].end());
        down_[child] = leave(std::move(reads), tree_.separators[child]);
      }
    }
    RowBounds made;
    made.steps = std::move(writer_.made());
    made.steps.lasting.assign(made.steps.steps.size(), true);
    for (const auto& [from, to] : {std::pair{&up_, &made.own}, std::pair{&down_, &made.rest}})
      for (const Reads& reads : *from) {
        // A factor is its number, a message -1 less its step's.
        for (const Read& read : reads) to->add(read.source < 0 ? read.factor : -1 - read.source);
        to->close();
      }
    return made;
  }

 private:
  using Reads = std::vector<Read>;

  Reads factors_of(int number) const {
    Reads reads;
    for (const int f : tree_.factors[number]) reads.push_back({f, -1, f});
    return reads;
  }

  bool has(const Read& read, int variable) const {
    const auto scope = writer_.scope_of(read);
    return std::find(scope.begin(), scope.end(), variable) != scope.end();
  }

  Reads eliminate(const Reads& reads, int variable) {
    Reads left, own;
    for (const Read& read : reads) (has(read, variable) ? own : left).push_back(read);
    for (Reads& part : mini_buckets(std::move(own))) {
      left.push_back(writer_.eliminate(variable, writer_.scope_of_all(part, variable), part));
    }
    return left;
  }

  // Eliminates all variables but some, the earliest first; what is left, in few tables.
  Reads leave(Reads reads, std::span<const int> keep) {
    for (const int variable : writer_.variables_of_all(reads))
      if (std::find(keep.begin(), keep.end(), variable) == keep.end()) reads = eliminate(reads, variable);
    Reads packed;
    for (Reads& part : mini_buckets(std::move(reads))) {
      packed.push_back(part.size() > 1 ? writer_.eliminate(int(kJoin), writer_.scope_of_all(part), part) : part.front());
    }
    return packed;
  }

  // Each table, the largest first, joins the part that it shares most cells with, if that stays small.
  std::vector<Reads> mini_buckets(Reads reads) {
    std::stable_sort(reads.begin(), reads.end(), [&](const Read& a, const Read& b) { return cells(a) > cells(b); });
    std::vector<Reads> parts;
    std::vector<std::vector<int>> unions;
    for (const Read& read : reads) {
      const auto scope = writer_.scope_of(read);
      int best = -1;
      double most = 0;
      for (std::size_t number = 0; number < parts.size(); ++number) {
        const i64 own = writer_.cells(unions[number]), both = together(unions[number], scope);
        const double shared = double(own) * double(cells(read)) / double(both);
        if (both <= std::max(most_cells_, own) && (best < 0 || shared > most)) best = int(number), most = shared;
      }
      if (best < 0) {
        parts.push_back({read});
        unions.emplace_back(scope.begin(), scope.end());
        continue;
      }
      parts[best].push_back(read);
      marks_.clear();
      for (const int v : unions[best]) marks_.add(v);
      for (const int v : scope)
        if (marks_.add(v)) unions[best].push_back(v);
    }
    return parts;
  }

  i64 cells(const Read& read) const { return writer_.cells(writer_.scope_of(read)); }

  i64 together(const std::vector<int>& one, std::span<const int> other) {
    marks_.clear();
    i64 cells = writer_.cells(one);
    for (const int v : one) marks_.add(v);
    for (const int v : other)
      if (marks_.add(v)) cells = times(cells, sizes_[v]);
    return cells;
  }

  const Tree& tree_;
  std::span<const i64> sizes_;
  i64 most_cells_;
  Writer writer_;
  std::vector<Reads> up_, down_;
  Marks marks_;
};

}  // namespace

RowBounds row_bounds(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, int tables, i64 cells) {
  return Bounds(tree, scopes, sizes, tables, cells).run();
}

}  // namespace elimina::plan
