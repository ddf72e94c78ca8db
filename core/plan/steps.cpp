#include "plan/steps.hpp"

#include <deque>
#include <map>
#include <numeric>
#include <tuple>

#include "elimina/product.hpp"
#include "plan/arena.hpp"
#include "plan/fusion.hpp"

namespace elimina::plan {
namespace {

// Two streamed tables are joined only if the bucket has at least this many times as many cells as their join.
constexpr i64 kJoinGain = 4;
// Smallest number of combinations of a bucket for which a step may join the tables of one side.
constexpr i64 kPackWork = i64{1} << 27;
constexpr i64 kPackGain = 900;    // smallest ratio of the bucket to such a join
constexpr i64 kProductGain = 32;  // the same if the bucket becomes a matrix product
constexpr i64 kLayOutGain = 256;  // the same for a single table that is copied for a matrix product

void remove(std::vector<Read>& reads, const std::vector<Read>& removed) {
  std::erase_if(reads,
                [&](const Read& read) { return std::find(removed.begin(), removed.end(), read) != removed.end(); });
}

}  // namespace

Steps Steps::moved(std::span<const int> sequence) const {
  std::vector<int> number(steps.size());
  for (std::size_t position = 0; position < sequence.size(); ++position) number[sequence[position]] = int(position);
  Steps result;
  result.scopes = scopes;
  result.axes = axes;
  result.most_tables = most_tables;
  result.first.push_back(0);
  for (const int old : sequence) {
    result.append_others(i64(result.steps.size()), others_of(old));
    result.steps.push_back(steps[old]);
    result.lasting.push_back(lasting[old]);
    for (Read read : reads_of(old)) {
      if (read.source >= 0) read.source = number[read.source];
      result.reads.push_back(read);
    }
    result.first.push_back(i64(result.reads.size()));
  }
  for (Output output : outputs) result.outputs.push_back({number[output.step], output.variable});
  return result;
}

struct Writer::Bucket {
  int variable, scope;
  i64 domain;
  i64 work;  // number of combinations of an output cell and values of all eliminated variables
  double weight;
  std::span<const int> others;
};

Writer::Writer(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, StepRules rules)
    : tree_(tree), sizes_(sizes), tables_(std::size_t(rules.tables)), products_(rules.products),
      is_split_(rules.is_split), axis_(sizes.size()) {
  // Both passes make up to five steps for each bucket. Reserving more is free, but growing lists are copied.
  const std::size_t expected = 5 * std::size_t(tree.size()),
                    items = 3 * (scopes.items.size() + tree.separators.items.size());
  made_.scopes.starts.reserve(scopes.starts.size() + expected);
  made_.scopes.items.reserve(items);
  made_.scopes.starts = scopes.starts;
  made_.scopes.items = scopes.items;
  made_.steps.reserve(expected);
  made_.first.reserve(expected + 1);
  made_.reads.reserve(3 * expected);
  made_.first.push_back(0);
  marks_.resize(sizes.size());
}

int Writer::scope(std::span<const int> variables) {
  looks_.look();
  made_.scopes.append(variables);
  return int(made_.scopes.size()) - 1;
}

// Appends the variables of the tables except `without`, by position, behind the existing variables.
void Writer::collect(std::span<const Read> reads, int without, std::vector<int>& variables) {
  const std::size_t first = variables.size();
  marks_.clear();
  if (without >= 0) marks_.add(without);
  for (const Read& read : reads) {
    // Scopes are read by index: `variables` may be the list that contains them, so it may grow meanwhile.
    const i64 end = made_.scopes.starts[read.scope + 1];
    for (i64 i = made_.scopes.starts[read.scope]; i < end; ++i)
      if (const int v = made_.scopes.items[i]; marks_.add(v)) variables.push_back(v);
  }
  std::sort(variables.begin() + std::ptrdiff_t(first), variables.end(),
            [&](int a, int b) { return position(a) < position(b); });
}

std::vector<int> Writer::variables_of_all(std::span<const Read> reads, int without) {
  std::vector<int> variables;
  collect(reads, without, variables);
  return variables;
}

int Writer::scope_of_all(std::span<const Read> reads, int without) {
  collect(reads, without, made_.scopes.items);
  made_.scopes.close();
  return int(made_.scopes.size()) - 1;
}

Read Writer::eliminate(int variable, int scope, std::vector<Read>& reads, double weight) {
  const i64 domain = size(variable);
  const Bucket bucket{variable, scope, domain, times(domain, cells(made_.scopes[scope])), weight, {}};
  limit_tables(bucket, reads);
  if (!is_split_) return {add(bucket, reads), scope};
  Tile tile = join_streamed(bucket, reads);
  if (variable >= 0 && tile.streamed.empty() && (products_ ? kProductWork : kPackWork) <= bucket.work &&
      bucket.work <= kHopelessWork) {
    pack_sides(bucket, reads, tile);
    shape(domain, scope, reads);
    classify(tile, shape_);
  }
  return {add(bucket, reads, tile, -1), scope};
}

Read Writer::eliminate_all(std::span<const int> variables, int scope, std::vector<Read> reads) {
  // Tables that lack some of the variables are spread over all of them, so that one stride leads through their values.
  for (const Read& read : std::vector(reads)) {
    if (is_spread(scope_of(read), variables, sizes_)) continue;
    std::vector<int> axes(variables.begin(), variables.end());
    for (const int v : scope_of(read))
      if (std::find(variables.begin(), variables.end(), v) == variables.end()) axes.push_back(v);
    join(reads, {read}, this->scope(axes), int(variables.size()));
  }
  const i64 domain = cells(variables);
  const Bucket bucket{variables.front(),   scope, domain, times(domain, cells(made_.scopes[scope])), 1.0,
                      variables.subspan(1)};
  return {add(bucket, reads, tile(domain, scope, reads), -1), scope};
}

Read Writer::project(int variable, std::span<const int> separator, std::vector<Read> reads,
                     const std::vector<int>& axes, double weight) {
  std::vector<int> remaining{variable};
  remaining.insert(remaining.end(), separator.begin(), separator.end());
  const std::vector<int> all = remaining;
  for (const int v : all) {
    if (std::find(axes.begin(), axes.end(), v) != axes.end()) continue;
    std::erase(remaining, v);
    reads = {eliminate(v, scope(remaining), reads, weight)};
  }
  const auto scope_of_first = scope_of(reads.front());
  if (reads.size() > 1 || !std::equal(scope_of_first.begin(), scope_of_first.end(), axes.begin(), axes.end()))
    join(reads, std::vector(reads), scope(axes));
  return reads.front();
}

std::vector<Read> Writer::match(const std::vector<Read>& marginals, std::span<const double> weights) {
  const int scope = marginals.front().scope;
  Tile tile;
  tile.outer.resize(scope_of(marginals.front()).size());
  std::iota(tile.outer.begin(), tile.outer.end(), 0);
  std::vector<Read> tables;
  for (std::size_t number = 0; number < marginals.size(); ++number) {
    tile.tables_a.resize(number);
    tile.streamed.resize(marginals.size() - number);
    std::iota(tile.tables_a.begin(), tile.tables_a.end(), 0);
    std::iota(tile.streamed.begin(), tile.streamed.end(), int(number));
    tables.push_back({add({int(kMatching), scope, 1, 0, weights[number], {}}, marginals, tile, -1), scope});
  }
  return tables;
}

int Writer::add(const Bucket& bucket, std::span<const Read> reads) {
  made_.reads.insert(made_.reads.end(), reads.begin(), reads.end());
  made_.first.push_back(i64(made_.reads.size()));
  made_.steps.push_back({bucket.variable, -1, bucket.domain, bucket.scope, 0, 0, 0, 0, -1, bucket.weight});
  return int(made_.steps.size()) - 1;
}

int Writer::add(const Bucket& bucket, std::span<const Read> reads, const Tile& tile, int rows) {
  for (const auto* group : {&tile.tables_a, &tile.tables_b, &tile.streamed})
    for (const int t : *group) made_.reads.push_back(reads[t]);
  made_.first.push_back(i64(made_.reads.size()));
  made_.append_others(i64(made_.steps.size()), bucket.others);
  made_.steps.push_back({bucket.variable, add_axes(tile), bucket.domain, bucket.scope, int(tile.outer.size()),
                         int(tile.mid.size()), int(tile.tables_a.size()), int(tile.tables_b.size()), rows,
                         bucket.weight});
  made_.most_tables = std::max(made_.most_tables, int(reads.size()));
  return int(made_.steps.size()) - 1;
}

// Adds the axes of a tile; returns the number of their list, or -1 if they are in the order of the scope.
int Writer::add_axes(const Tile& tile) {
  const i64 begin = made_.axes.starts.back();
  for (const auto* group : {&tile.outer, &tile.mid, &tile.lo})
    for (const int axis : *group) made_.axes.add(axis);
  const std::span<const int> axes(made_.axes.items.begin() + begin, made_.axes.items.end());
  if (axes.size() <= kPositions.size() && std::equal(axes.begin(), axes.end(), kPositions.begin())) {
    made_.axes.items.resize(std::size_t(begin));
    return -1;
  }
  made_.axes.close();
  return int(made_.axes.size()) - 1;
}

void Writer::shape(i64 domain, int scope, std::span<const Read> reads) {
  const auto axes = made_.scopes[scope];
  shape_.domain = domain;
  shape_.sizes.clear();
  marks_.clear();
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    shape_.sizes.push_back(sizes_[axes[axis]]);
    marks_.add(axes[axis]);
    axis_[axes[axis]] = int(axis);
  }
  shape_.members.resize(reads.size());
  for (std::size_t t = 0; t < reads.size(); ++t) {
    shape_.members[t].clear();
    for (const int v : scope_of(reads[t]))
      if (marks_.has(v)) shape_.members[t].push_back(axis_[v]);
  }
}

Tile Writer::tile(i64 domain, int scope, std::span<const Read> reads, int rows) {
  shape(domain, scope, reads);
  return choose_tile(shape_, rows);
}

// Replaces the chosen tables by their join. `scope`: scope of the join; -1: all variables of the tables, in elimination
// order.
void Writer::join(std::vector<Read>& reads, const std::vector<Read>& chosen, int scope, int rows) {
  if (scope < 0) scope = scope_of_all(chosen);
  remove(reads, chosen);
  const Bucket bucket{int(kJoin), scope, 1, 0, 1.0, {}};
  reads.push_back({is_split_ ? add(bucket, chosen, tile(1, scope, chosen, rows), rows) : add(bucket, chosen), scope});
}

// Joins tables until one step can read all of them; those whose join has the fewest cells are joined first. A hopeless
// bucket is planned for its figures alone, so it does not matter which of its tables are joined.
void Writer::limit_tables(const Bucket& bucket, std::vector<Read>& reads) {
  if (reads.size() > tables_ && bucket.work <= kHopelessWork) join_equal(reads);
  while (reads.size() > tables_) {
    if (bucket.work > kHopelessWork) {
      join(reads, {reads.begin(), reads.begin() + tables_});
    } else {
      join_smallest(reads);
    }
  }
}

// Joins tables of the same scope, small ones first, as far as needed: `join_smallest` compares all tables for each one
// that it joins.
void Writer::join_equal(std::vector<Read>& reads) {
  std::map<std::vector<int>, std::size_t> group_of;
  std::vector<std::deque<Read>> groups;
  for (const Read& read : reads) {
    const auto scope = scope_of(read);
    const auto [at, is_new] = group_of.try_emplace({scope.begin(), scope.end()}, groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(read);
  }
  std::vector<std::tuple<i64, const std::vector<int>*, std::size_t>> sequence;
  for (const auto& [scope, group] : group_of) sequence.emplace_back(cells(scope), &scope, group);
  std::stable_sort(sequence.begin(), sequence.end(),
                   [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
  std::size_t remaining = reads.size();
  for (const auto& [count, scope, group] : sequence) {
    auto& same = groups[group];
    while (same.size() > 1 && remaining > tables_) {
      const auto end = same.begin() + std::ptrdiff_t(std::min({same.size(), tables_, remaining - tables_ + 1}));
      const std::vector<Read> chosen(same.begin(), end);
      same.erase(same.begin(), end);
      std::vector<Read> joined = chosen;
      join(joined, chosen);
      same.push_back(joined.front());
      remaining -= chosen.size() - 1;
    }
  }
  reads.clear();
  for (const auto& group : groups) reads.insert(reads.end(), group.begin(), group.end());
}

void Writer::join_smallest(std::vector<Read>& reads) {
  std::stable_sort(reads.begin(), reads.end(), [&](const Read& a, const Read& b) {
    const auto first = scope_of(a), other = scope_of(b);
    const i64 cells_one = cells(first), cells_other = cells(other);
    if (cells_one != cells_other) return cells_one < cells_other;
    return std::lexicographical_compare(first.begin(), first.end(), other.begin(), other.end());
  });
  std::vector<Read> chosen{reads.front()}, others(reads.begin() + 1, reads.end());
  marks_.clear();
  i64 together = 1;
  const auto include = [&](const Read& read) {
    for (const int v : scope_of(read))
      if (marks_.add(v)) together = times(together, sizes_[v]);
  };
  include(chosen.front());
  while (chosen.size() < tables_ && reads.size() - chosen.size() >= tables_) {
    std::size_t best = 0;
    i64 fewest = 0;
    for (std::size_t i = 0; i < others.size(); ++i) {
      i64 with = together;
      for (const int v : scope_of(others[i]))
        if (!marks_.has(v)) with = times(with, sizes_[v]);
      if (i == 0 || with < fewest) best = i, fewest = with;
    }
    chosen.push_back(others[best]);
    include(others[best]);
    others.erase(others.begin() + std::ptrdiff_t(best));
  }
  join(reads, chosen);
}

i64 Writer::cells_together(const Read& first, const Read& other) {
  marks_.clear();
  i64 together = 1;
  for (const Read* read : {&first, &other})
    for (const int v : scope_of(*read))
      if (marks_.add(v)) together = times(together, sizes_[v]);
  return together;
}

// Joins pairs of streamed tables if their join is much smaller than the bucket; returns the resulting split.
Tile Writer::join_streamed(const Bucket& bucket, std::vector<Read>& reads) {
  while (true) {
    Tile split = tile(bucket.domain, bucket.scope, reads);
    if (bucket.work < kSmallWork || bucket.work > kHopelessWork || split.streamed.size() < 2) return split;
    i64 fewest = kMostCells;
    std::pair<int, int> best;
    // Ties are broken by the first table, then by the second one.
    for (std::size_t i = 0; i < split.streamed.size(); ++i)
      for (std::size_t j = i + 1; j < split.streamed.size(); ++j)
        if (const i64 count = cells_together(reads[split.streamed[i]], reads[split.streamed[j]]); count < fewest) {
          fewest = count;
          best = {split.streamed[i], split.streamed[j]};
        }
    if (times(fewest, kJoinGain) > bucket.work) return split;
    join(reads, {reads[best.first], reads[best.second]});
  }
}

// Joins the tables of lhs, and those of rhs, to matrices [variable][cell] if that is cheap compared with the bucket. A
// side's tables are joined in groups with the same slow axes, or all together. Slow axes that no rhs table has count as
// middle axes of the lhs. A single table is copied if its cells are not contiguous.
void Writer::pack_sides(const Bucket& bucket, std::vector<Read>& reads, const Tile& tile) {
  std::vector<Read> a, b;
  for (const int t : tile.tables_a) a.push_back(reads[t]);
  for (const int t : tile.tables_b) b.push_back(reads[t]);
  marks_.clear();
  for (const Read& read : b)
    for (const int v : scope_of(read)) marks_.add(v);
  const auto separator = made_.scopes[bucket.scope];
  std::vector<int> kept, mid, lo;
  for (const int axis : tile.outer) (marks_.has(separator[axis]) ? kept : mid).push_back(separator[axis]);
  for (const int axis : tile.mid) mid.push_back(separator[axis]);
  for (const int axis : tile.lo) lo.push_back(separator[axis]);
  pack(bucket, reads, a, kept, mid);
  pack(bucket, reads, b, kept, lo);
}

void Writer::pack(const Bucket& bucket, std::vector<Read>& reads, const std::vector<Read>& tables,
                  const std::vector<int>& kept, const std::vector<int>& cells) {
  std::vector<std::pair<std::vector<int>, std::vector<Read>>> groups;  // in their original order
  std::vector<int> all;
  for (const Read& read : tables) {
    marks_.clear();
    for (const int v : scope_of(read)) marks_.add(v);
    std::vector<int> key;
    for (const int v : kept)
      if (marks_.has(v)) key.push_back(v);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& entry) { return entry.first == key; });
    if (group == groups.end()) group = groups.insert(group, {key, {}});
    group->second.push_back(read);
  }
  marks_.clear();
  for (const auto& [key, group] : groups)
    for (const int v : key) marks_.add(v);
  for (const int v : kept)
    if (marks_.has(v)) all.push_back(v);
  const i64 gain = products_ ? kProductGain : kPackGain;
  if (groups.size() > 1 && is_cheap(bucket, all, cells, gain)) groups = {{all, tables}};
  for (const auto& [key, group] : groups) {
    const bool is_single = group.size() == 1;
    if (!is_cheap(bucket, key, cells, is_single && products_ ? kLayOutGain : gain) ||
        (is_single && is_packed(bucket, group.front(), key, cells)))
      continue;
    std::vector<int> axes{bucket.variable};
    axes.insert(axes.end(), key.begin(), key.end());
    axes.insert(axes.end(), cells.begin(), cells.end());
    join(reads, group, scope(axes), 1 + int(key.size()));
  }
}

// True if a table over these variables and the bucket's own is cheap compared with the bucket.
bool Writer::is_cheap(const Bucket& bucket, const std::vector<int>& key, const std::vector<int>& cells,
                      i64 gain) const {
  const i64 table_work = times(times(size(bucket.variable), this->cells(key)), this->cells(cells));
  return times(table_work, gain) <= bucket.work;
}

// True if the table has none of the variables `cells`, or its cells over these are contiguous rows that start at
// multiples of four elements.
bool Writer::is_packed(const Bucket& bucket, const Read& read, const std::vector<int>& key,
                       const std::vector<int>& cells) const {
  const auto scope = scope_of(read);
  const auto is_outside = [&](int v) {
    return v == bucket.variable || std::find(key.begin(), key.end(), v) != key.end();
  };
  if (std::all_of(scope.begin(), scope.end(), is_outside)) return true;
  std::vector<i64> shape;
  for (const int v : scope) shape.push_back(sizes_[v]);
  std::vector<i64> strides(shape.size());
  lay_out_table(shape, 1, -1, strides);
  const auto stride = [&](int v) {
    const auto axis = std::find(scope.begin(), scope.end(), v);
    return axis == scope.end() ? i64{0} : strides[std::size_t(axis - scope.begin())];
  };
  i64 expected_stride = 1;
  for (std::size_t i = cells.size(); i-- > 0; expected_stride *= sizes_[cells[i]])
    if (sizes_[cells[i]] > 1 && stride(cells[i]) != expected_stride) return false;
  return stride(bucket.variable) % 4 == 0 &&
         std::all_of(key.begin(), key.end(), [&](int v) { return stride(v) % 4 == 0; });
}

namespace {

// Adds one table to each mini-bucket of a variable. Afterwards, the mini-buckets of a group of at most `tables` agree
// on the best cost of each assignment of the variables that all of them share: the excess of a mini-bucket's best costs
// over the group's mean is moved to the others (moment matching: Ihler, Flerova, Dechter and Otten 2012, section 3.2;
// with weights, marginals of their powers: Liu and Ihler 2011).
class Matching {
 public:
  struct Branch {
    int node;
    std::vector<Read> reads;
    double weight;
  };

  Matching(const Tree& tree, Writer& writer, int tables) : tree_(tree), writer_(writer), tables_(tables) {}

  void apply(std::vector<Branch>& branches) {
    const std::vector<int> axes = shared(branches);
    const std::size_t groups = (branches.size() + tables_ - 1) / tables_;
    for (std::size_t group = 0; group < groups; ++group) {
      std::vector<Branch*> group_branches;
      for (std::size_t i = group; i < branches.size(); i += groups) group_branches.push_back(&branches[i]);
      std::vector<Read> bests;
      std::vector<double> weights;
      for (const Branch* branch : group_branches) {
        bests.push_back(writer_.project(tree_.variables[branch->node], tree_.separators[branch->node], branch->reads,
                                        axes, branch->weight));
        weights.push_back(branch->weight);
      }
      const std::vector<Read> tables = writer_.match(bests, parts_of_sum(weights));
      for (std::size_t i = 0; i < group_branches.size(); ++i) group_branches[i]->reads.push_back(tables[i]);
    }
  }

 private:
  std::vector<int> shared(const std::vector<Branch>& branches) {
    std::vector<int> axes{tree_.variables[branches.front().node]};
    for (const int v : tree_.separators[branches.front().node]) {
      const auto has = [&](const Branch& branch) {
        const auto separator = tree_.separators[branch.node];
        return std::find(separator.begin(), separator.end(), v) != separator.end();
      };
      if (std::all_of(branches.begin(), branches.end(), has)) axes.push_back(v);
    }
    return axes;
  }

  static std::vector<double> parts_of_sum(std::vector<double> weights) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight = total ? weight / total : 1.0 / double(weights.size());
    return weights;
  }

  const Tree& tree_;
  Writer& writer_;
  std::size_t tables_;
};

}  // namespace

Steps upward_steps(const Tree& tree, const Lists& scopes, std::span<const i64> sizes, std::span<const int> sequence,
                   StepRules rules, bool matched, std::span<const double> weights, bool stays) {
  Writer writer(tree, scopes, sizes, rules);
  Matching matching(tree, writer, rules.tables);
  Fusion fusion(tree, sizes, rules.tables);
  std::vector<int> written(tree.size()), written_scopes(tree.size());
  std::vector<Matching::Branch> branches;
  for (std::size_t from = 0, to; from < sequence.size(); from = to) {
    to = from;
    branches.clear();
    while (to < sequence.size() && tree.variables[sequence[to]] == tree.variables[sequence[from]]) {
      const int number = sequence[to++];
      Matching::Branch& branch = branches.emplace_back(
          Matching::Branch{number, fusion.remove(number), weights.empty() ? 1.0 : weights[number]});
      writer.add_factors(number, branch.reads);
      for (const int child : tree.children[number])
        if (!fusion.waits(child)) branch.reads.push_back({written[child], written_scopes[child]});
    }
    if (matched && branches.size() > 1) matching.apply(branches);
    for (Matching::Branch& branch : branches) {
      // A waiting bucket's inputs stay in memory until its parent's step, so a bucket waits only if its parent comes
      // next, or if all messages stay anyway.
      const bool is_next = stays || (to < sequence.size() && sequence[to] == tree.parents[branch.node]);
      if (rules.fused && is_next && fusion.pays(branch.node, branch.reads, writer.made().scopes)) {
        fusion.wait(branch.node, std::move(branch.reads));
        continue;
      }
      written_scopes[branch.node] = writer.scope(tree.separators[branch.node]);
      const std::vector<int> variables = fusion.variables(branch.node);
      const Read message =
          variables.size() > 1
              ? writer.eliminate_all(variables, written_scopes[branch.node], std::move(branch.reads))
              : writer.eliminate(variables.front(), written_scopes[branch.node], branch.reads, branch.weight);
      written[branch.node] = message.source;
    }
  }
  Steps& steps = writer.made();
  std::vector<char> is_read(steps.steps.size());
  for (const Read& read : steps.reads)
    if (read.source >= 0) is_read[read.source] = true;
  for (int step = 0; step < int(steps.steps.size()); ++step)
    if (!is_read[step]) steps.outputs.push_back({step, -1});
  steps.lasting.assign(steps.steps.size(), false);
  if (stays)
    for (const int step : written) steps.lasting[step] = true;
  return std::move(steps);
}

}  // namespace elimina::plan
