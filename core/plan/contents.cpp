#include "plan/contents.hpp"

#include <atomic>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "exec/share.hpp"
#include "plan/mini_buckets.hpp"
#include "stop.hpp"

namespace elimina::plan {

namespace {

// Largest number of pairs of tables in a bucket that are compared; larger buckets are partitioned by scopes.
constexpr std::size_t kMostPairs = 1 << 15;
// Number of cells up to which a pair is compared at all assignments, and number of sampled assignments for larger
// pairs.
constexpr i64 kExact = 1 << 16;
constexpr int kSamples = 1 << 11;
// Number of cells of the inner axes, whose offsets are listed once; the offsets and the cells stay in the fastest
// cache.
constexpr i64 kInner = 1 << 11;
// Number of cells of the largest joined table that one thread makes alone.
constexpr i64 kAlone = 1 << 16;

// Sum of some tables of a bucket.
struct Joined {
  std::vector<int> scope;
  Values table, message;     // the message is the minimum of the table over the bucket's variable
  std::vector<int> numbers;  // positions of the tables in the bucket
};

std::vector<int> union_of(const std::vector<int>& first, const std::vector<int>& other) {
  std::vector<int> both;
  std::ranges::set_union(first, other, std::back_inserter(both));
  return both;
}

std::vector<int> difference_of(const std::vector<int>& first, const std::vector<int>& other) {
  std::vector<int> rest;
  std::ranges::set_difference(first, other, std::back_inserter(rest));
  return rest;
}

void keep_least(const double* values, i64 count, double* least) {
  for (i64 n = 0; n < count; ++n) least[n] = std::min(least[n], values[n]);
}

Values message_of(const Values& table, int size) {
  const i64 cells = i64(table.size()) / size;
  Values message(table.begin(), table.begin() + cells);
  for (int x = 1; x < size; ++x) keep_least(table.data() + x * cells, cells, message.data());
  return message;
}

// Offsets in two tables for each cell of their joint scope. The scope's first variable, which both tables have, is left
// out: it is visited by `step`.
class Walk {
 public:
  Walk(std::span<const int> sizes, const std::vector<int>& scope, const std::vector<int>& first,
       const std::vector<int>& other) {
    for (const int v : scope) shape_.push_back(sizes[v]);
    const std::vector<int>* const scopes[] = {&first, &other};
    for (int side = 0; side < 2; ++side) {
      strides_[side].resize(scope.size());
      i64 stride = 1;
      for (std::size_t axis = scope.size(), axes = scopes[side]->size(); axis-- > 0;)
        if (axes > 0 && (*scopes[side])[axes - 1] == scope[axis]) {
          strides_[side][axis] = stride;
          stride *= shape_[axis];
          --axes;
        }
    }
    outer_ = scope.size();
    while (outer_ > 1 && (inner_ == 1 || inner_ * shape_[outer_ - 1] <= kInner)) inner_ *= shape_[--outer_];
    for (int side = 0; side < 2; ++side) offsets_[side] = inner_places(strides_[side]);
  }

  i64 cells() const { return std::accumulate(shape_.begin() + 1, shape_.end(), i64{1}, times); }
  // Returns the distance from one value of the first variable to the next in a table.
  i64 step(int side) const { return strides_[side][0]; }
  const std::vector<i32>& offsets(int side) const { return offsets_[side]; }

  i64 blocks() const { return cells() / inner_; }
  i64 block_cells() const { return inner_; }

  // Returns the offsets in both tables at which a block begins; the inner axes' offsets are relative to them.
  std::pair<i64, i64> start(i64 block) const {
    i64 at[2] = {0, 0};
    for (std::size_t axis = outer_; axis-- > 1; block /= shape_[axis])
      for (int side = 0; side < 2; ++side) at[side] += block % shape_[axis] * strides_[side][axis];
    return {at[0], at[1]};
  }

  // Adds up the cells of a block; the sums may overwrite the first table's cells.
  void add(const double* first, const double* other, double* sums) const {
    const i32 *offsets = offsets_[0].data(), *other_places = offsets_[1].data();
    if (offsets[inner_ - 1] == inner_ - 1)
      for (i64 n = 0; n < inner_; ++n) sums[n] = first[n] + other[other_places[n]];
    else
      for (i64 n = 0; n < inner_; ++n) sums[n] = first[offsets[n]] + other[other_places[n]];
  }

  // Returns the offsets in both tables at a random assignment of all variables but the first.
  template <class Random>
  std::pair<i64, i64> sample(Random& random) const {
    i64 at[2] = {0, 0};
    for (std::size_t axis = 1; axis < shape_.size(); ++axis) {
      const i64 x = i64(random() % u64(shape_[axis]));
      for (int side = 0; side < 2; ++side) at[side] += x * strides_[side][axis];
    }
    return {at[0], at[1]};
  }

 private:
  std::vector<i32> inner_places(const std::vector<i64>& strides) const {
    std::vector<i32> offsets{0};
    offsets.reserve(std::size_t(inner_));
    for (std::size_t axis = shape_.size(); axis-- > outer_;) {
      const std::size_t before = offsets.size();
      for (i64 x = 1; x < shape_[axis]; ++x)
        for (std::size_t n = 0; n < before; ++n) offsets.push_back(i32(offsets[n] + x * strides[axis]));
    }
    return offsets;
  }

  std::vector<i64> shape_, strides_[2];
  std::vector<i32> offsets_[2];
  std::size_t outer_;  // axes before the inner ones
  i64 inner_ = 1;
};

class ContentPartition {
 public:
  ContentPartition(std::span<const int> sizes, std::vector<Costs> tables, int ibound, double infinite_sum, int threads)
      : sizes_(sizes), ibound_(std::size_t(ibound)), infinite_sum_(infinite_sum), threads_(threads),
        near_(sizes.size()), buckets_(sizes.size()) {
    for (const Costs& table : tables) meet(table.scope);
    for (Costs& table : tables) buckets_[std::size_t(table.scope.front())].push_back(std::move(table));
  }

  std::vector<std::vector<std::vector<int>>> divide() {
    std::vector<std::vector<std::vector<int>>> partition(buckets_.size());
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      std::vector<Joined> single;
      for (Costs& table : std::exchange(buckets_[bucket], {})) {
        Values message = message_of(table.values, sizes_[bucket]);
        single.push_back({std::move(table.scope), std::move(table.values), std::move(message), {int(single.size())}});
      }
      for (Joined& mini_bucket : parts_of(std::move(single))) {
        std::ranges::sort(mini_bucket.numbers);
        partition[bucket].push_back(std::move(mini_bucket.numbers));
        mini_bucket.scope.erase(mini_bucket.scope.begin());
        meet(mini_bucket.scope);
        if (!mini_bucket.scope.empty())
          buckets_[std::size_t(mini_bucket.scope.front())].push_back(
              {std::move(mini_bucket.scope), std::move(mini_bucket.message)});
      }
      if (partition[bucket].empty()) partition[bucket].emplace_back();
    }
    return partition;
  }

 private:
  // Gain of joining two mini-buckets. Ties go to the larger `met`, then to fewer added variables. `met`: number of
  // pairs of variables that share a table, one of them only in the first mini-bucket, the other only in the second.
  struct Pair {
    int first, other;
    double gain;
    i64 met, added;
    bool operator<(const Pair& than) const {
      return std::tuple(gain, met, -added) < std::tuple(than.gain, than.met, -than.added);
    }
  };

  std::vector<Joined> parts_of(std::vector<Joined> single) {
    if (single.empty()) return single;
    std::vector<int> whole;
    for (const Joined& table : single) whole = union_of(whole, table.scope);
    if (whole.size() <= ibound_ + 1) return {joined(std::move(single))};
    if (single.size() * (single.size() - 1) / 2 > kMostPairs) return by_scope(std::move(single));
    return merged(contained(std::move(single)));
  }

  std::vector<Joined> by_scope(std::vector<Joined> single) const {
    const std::vector<std::span<const int>> scopes = [&] {
      std::vector<std::span<const int>> scopes;
      for (const Joined& table : single) scopes.emplace_back(table.scope);
      return scopes;
    }();
    std::vector<Joined> mini_buckets;
    for (const std::vector<int>& members : MiniBuckets().divide(scopes, i64(ibound_) + 1)) {
      std::vector<Joined> tables;
      for (const int member : members) tables.push_back(std::move(single[std::size_t(member)]));
      mini_buckets.push_back(joined(std::move(tables)));
    }
    return mini_buckets;
  }

  // Joins each table with the table of the largest gain among those that contain its variables, if there is one.
  std::vector<Joined> contained(std::vector<Joined> single) const {
    std::ranges::stable_sort(single, std::greater(), [](const Joined& table) { return table.scope.size(); });
    std::vector<Joined> holders_and_rest;
    for (Joined& table : single) {
      std::vector<std::size_t> holders;
      for (std::size_t n = 0; n < holders_and_rest.size(); ++n)
        if (std::ranges::includes(holders_and_rest[n].scope, table.scope)) holders.push_back(n);
      if (holders.empty()) {
        holders_and_rest.push_back(std::move(table));
        continue;
      }
      std::size_t best = holders.front();
      double best_gain = -std::numeric_limits<double>::infinity();
      for (const std::size_t n : holders) {
        if (holders.size() == 1) break;
        if (const double gain = gain_of(holders_and_rest[n], table); gain > best_gain) best_gain = gain, best = n;
      }
      holders_and_rest[best] = joined(std::move(holders_and_rest[best]), std::move(table));
    }
    return holders_and_rest;
  }

  // Joins the two mini-buckets with the largest gain, again and again until no two may be joined.
  std::vector<Joined> merged(std::vector<Joined> mini_buckets) const {
    std::vector<int> remaining(mini_buckets.size());
    std::iota(remaining.begin(), remaining.end(), 0);
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < remaining.size(); ++i)
      for (std::size_t j = i + 1; j < remaining.size(); ++j) pairs.push_back({remaining[i], remaining[j], 0, 0, 0});
    compare(mini_buckets, pairs, 0);
    while (!pairs.empty()) {
      const auto [first, other, gain, met, added] = *std::max_element(pairs.begin(), pairs.end());
      const int both = int(mini_buckets.size());
      mini_buckets.push_back(
          joined(std::move(mini_buckets[std::size_t(first)]), std::move(mini_buckets[std::size_t(other)])));
      std::erase_if(remaining, [&](int name) { return name == first || name == other; });
      std::erase_if(pairs, [&](const Pair& pair) {
        return pair.first == first || pair.first == other || pair.other == first || pair.other == other;
      });
      const std::size_t compared = pairs.size();
      for (const int name : remaining) pairs.push_back({name, both, 0, 0, 0});
      remaining.push_back(both);
      compare(mini_buckets, pairs, compared);
    }
    std::vector<Joined> result;
    for (const int name : remaining) result.push_back(std::move(mini_buckets[std::size_t(name)]));
    return result;
  }

  // Fills in the pairs from `first` on, and drops pairs that may not be joined.
  void compare(const std::vector<Joined>& mini_buckets, std::vector<Pair>& pairs, std::size_t first) const {
    const auto is_too_large = [&](Pair& pair) {
      const auto& first_scope = mini_buckets[std::size_t(pair.first)].scope;
      const auto& other = mini_buckets[std::size_t(pair.other)].scope;
      const std::size_t largest = std::max(first_scope.size(), other.size());
      const std::vector<int> more = difference_of(other, first_scope), less = difference_of(first_scope, other);
      const std::size_t variables = first_scope.size() + more.size();
      pair.added = i64(variables - largest);
      for (const int v : less)
        for (const int w : more) pair.met += std::ranges::binary_search(near_[std::size_t(v)], w);
      return variables > std::max(ibound_ + 1, largest);
    };
    pairs.erase(std::remove_if(pairs.begin() + i64(first), pairs.end(), is_too_large), pairs.end());
    std::atomic<bool> is_stopped = false;
    share(threads_, i64(first), i64(pairs.size()), [&](i64 n, int thread) {
      if (thread == 0 && stopped()) is_stopped = true;
      Pair& pair = pairs[std::size_t(n)];
      if (!is_stopped)
        pair.gain = gain_of(mini_buckets[std::size_t(pair.first)], mini_buckets[std::size_t(pair.other)]);
    });
    if (is_stopped) throw Stopped{};
  }

  // Returns the gain of the joint message of two tables over the sum of their own messages: the mean over all
  // assignments or, if there are many, over sampled ones.
  double gain_of(const Joined& first, const Joined& other) const {
    const std::vector<int> scope = union_of(first.scope, other.scope);
    const Walk walk(sizes_, scope, first.scope, other.scope);
    const int size = sizes_[std::size_t(scope.front())];
    const double *a = first.table.data(), *b = other.table.data(), *least_a = first.message.data(),
                 *least_b = other.message.data();
    double sum = 0;
    const auto add = [&](i64 cell, i64 other_cell) {
      double together = std::numeric_limits<double>::infinity();
      for (int x = 0; x < size; ++x)
        together = std::min(together, a[x * walk.step(0) + cell] + b[x * walk.step(1) + other_cell]);
      sum += std::min(together, infinite_sum_) - std::min(least_a[cell] + least_b[other_cell], infinite_sum_);
    };
    const i64 cells = walk.cells();
    if (times(cells, size) > kExact) {
      std::mt19937_64 random;
      for (int n = 0; n < kSamples; ++n) std::apply(add, walk.sample(random));
      return sum / kSamples;
    }
    const std::vector<i32>&offsets = walk.offsets(0), &other_places = walk.offsets(1);
    for (i64 block = 0; block < walk.blocks(); ++block) {
      const auto [cell, other_cell] = walk.start(block);
      for (std::size_t n = 0; n < offsets.size(); ++n) add(cell + offsets[n], other_cell + other_places[n]);
    }
    return sum / double(cells);
  }

  Joined joined(std::vector<Joined> tables) const {
    Joined sum = std::move(tables.front());
    for (std::size_t n = 1; n < tables.size(); ++n) sum = joined(std::move(sum), std::move(tables[n]));
    return sum;
  }

  Joined joined(Joined base, Joined other) const {
    check_stop();
    std::vector<int> scope = union_of(base.scope, other.scope);
    if (scope == other.scope) std::swap(base, other);
    const Walk walk(sizes_, scope, base.scope, other.scope);
    const i64 size = sizes_[std::size_t(scope.front())], cells = walk.cells();
    // If `base` has all variables, the sum overwrites its table; otherwise, the sum needs a new one.
    const bool grows = scope != base.scope;
    Joined sum = grows ? Joined{scope, Values(std::size_t(size * cells)), Values(static_cast<std::size_t>(cells)), {}}
                       : std::move(base);
    const double *from = grows ? base.table.data() : sum.table.data(), *added = other.table.data();
    double *table = sum.table.data(), *message = sum.message.data();
    share(size * cells > kAlone ? threads_ : 1, 0, walk.blocks(), [&](i64 block, int) {
      const auto [at, other_at] = walk.start(block);
      const i64 first = block * walk.block_cells();
      for (i64 x = 0; x < size; ++x) {
        double* to = table + x * cells + first;
        walk.add(from + x * walk.step(0) + at, added + x * walk.step(1) + other_at, to);
        if (x == 0) std::copy_n(to, walk.block_cells(), message + first);
        else keep_least(to, walk.block_cells(), message + first);
      }
    });
    std::vector<int>& numbers = grows ? base.numbers : sum.numbers;
    numbers.insert(numbers.end(), other.numbers.begin(), other.numbers.end());
    if (grows) sum.numbers = std::move(numbers);
    return sum;
  }

  // Records that a table connects these variables.
  void meet(const std::vector<int>& scope) {
    for (const int v : scope) near_[std::size_t(v)] = union_of(near_[std::size_t(v)], scope);
  }

  const std::span<const int> sizes_;
  const std::size_t ibound_;
  const double infinite_sum_;
  const int threads_;
  std::vector<std::vector<int>> near_;
  std::vector<std::vector<Costs>> buckets_;
};

}  // namespace

std::vector<std::vector<std::vector<int>>> partition_by_content(std::span<const int> sizes, std::vector<Costs> tables,
                                                                int ibound, double infinite_sum, int threads) {
  return ContentPartition(sizes, std::move(tables), ibound, infinite_sum, threads).divide();
}

}  // namespace elimina::plan
