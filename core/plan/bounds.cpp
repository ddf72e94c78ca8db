// Lower bounds on the rest of the problem, with which steps on tuples prune. They come from mini-buckets over the same
// tree (mini-bucket tree elimination: Mateescu, Dechter and Kask, AAAI 2002). A pass towards the roots bounds each
// bucket's message from below, a pass back bounds the cost outside of its subtree.
#include "elimina/program.hpp"
#include "plan/mini_buckets.hpp"
#include "plan/steps.hpp"

namespace elimina::plan {
namespace {

class Bounds {
 public:
  Bounds(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, int tables, i64 cells)
      : tree_(tree), max_weight_(cell_weight(cells)), writer_(tree, scopes, sizes, {tables}), up_(tree.size()),
        down_(tree.size()) {
    for (const i64 size : sizes) weights_.push_back(cell_weight(size));
  }

  RowBounds run() {
    for (int number = 0; number < int(tree_.size()); ++number) {
      Reads reads;
      writer_.add_factors(number, reads);
      for (const int child : tree_.children[number]) reads.insert(reads.end(), up_[child].begin(), up_[child].end());
      up_[number] = eliminate(reads, tree_.variables[number]);
    }
    for (int number = int(tree_.size()) - 1; number >= 0; --number) {
      Reads factors;
      writer_.add_factors(number, factors);
      factors.insert(factors.end(), down_[number].begin(), down_[number].end());
      for (const int child : tree_.children[number]) {
        Reads reads = factors;
        for (const int other : tree_.children[number])
          if (other != child) reads.insert(reads.end(), up_[other].begin(), up_[other].end());
        down_[child] = pack(std::move(reads), tree_.separators[child]);
      }
    }
    RowBounds bounds;
    bounds.steps = std::move(writer_.made());
    bounds.steps.lasting.assign(bounds.steps.steps.size(), true);
    for (const auto& [from, to] : {std::pair{&up_, &bounds.upward}, std::pair{&down_, &bounds.rest}})
      for (const Reads& reads : *from) {
        // Factors have their number, messages -1 minus the number of their step.
        for (const Read& read : reads) to->add(read.source < 0 ? read.scope : -1 - read.source);
        to->close();
      }
    return bounds;
  }

 private:
  using Reads = std::vector<Read>;

  Reads eliminate(const Reads& reads, int variable) {
    Reads rest, bucket;
    for (const Read& read : reads) (writer_.has(read, variable) ? bucket : rest).push_back(read);
    for (Reads& mini_bucket : mini_buckets(bucket)) {
      rest.push_back(writer_.eliminate(variable, writer_.scope_of_all(mini_bucket, variable), mini_bucket));
    }
    return rest;
  }

  // Eliminates all variables except `keep`, the earliest first, and joins the remaining tables to one for each
  // mini-bucket.
  Reads pack(Reads reads, std::span<const int> keep) {
    for (const int variable : writer_.variables_of_all(reads))
      if (std::find(keep.begin(), keep.end(), variable) == keep.end()) reads = eliminate(reads, variable);
    Reads packed;
    for (Reads& mini_bucket : mini_buckets(reads)) {
      packed.push_back(mini_bucket.size() > 1
                           ? writer_.eliminate(int(kJoin), writer_.scope_of_all(mini_bucket), mini_bucket)
                           : mini_bucket.front());
    }
    return packed;
  }

  std::vector<Reads> mini_buckets(const Reads& reads) {
    std::vector<std::span<const int>> scopes;
    for (const Read& read : reads) scopes.push_back(writer_.scope_of(read));
    std::vector<Reads> result;
    for (const auto& members : dividing_.divide(scopes, max_weight_, weights_)) {
      result.emplace_back();
      for (const int member : members) result.back().push_back(reads[member]);
    }
    return result;
  }

  const Tree& tree_;
  std::vector<int> weights_;
  i64 max_weight_;
  MiniBuckets dividing_;
  Writer writer_;
  std::vector<Reads> up_, down_;
};

}  // namespace

RowBounds row_bounds(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, int tables, i64 cells) {
  return Bounds(tree, scopes, sizes, tables, cells).run();
}

}  // namespace elimina::plan
