#include "approx/conditioned_tree.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "stop.hpp"

namespace elimina::approx {

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Products below this may leave the range of floats.
constexpr double kLeastProduct = 1e-290;

// A product that underflows is below 1e-308. Its share of the sum is at most 1e-308 divided by the scales of the node
// and of its ancestors: below 1e-90 if the logarithms of these scales add up to more than this limit.
constexpr double kLeastLogScales = -500;

}  // namespace

ConditionedTree::ConditionedTree(std::vector<std::int64_t> sizes, const ScopeList& scopes,
                                 std::vector<std::int32_t> order)
    : sizes_(std::move(sizes)), begins_(sizes_.size() + 1, 0), order_(std::move(order)), nodes_(order_.size()) {
  std::partial_sum(sizes_.begin(), sizes_.end(), begins_.begin() + 1);
  std::vector<std::int32_t> ranks(sizes_.size(), -1);
  for (std::size_t rank = 0; rank < order_.size(); ++rank) ranks[order_[rank]] = std::int32_t(rank);
  const auto by_rank = [&](std::int32_t a, std::int32_t b) { return ranks[a] < ranks[b]; };
  // Free variables are those to be eliminated. These lists hold the factors of each bucket, the factors without free
  // variables, and the free variables of each factor by rank.
  std::vector<std::vector<std::uint32_t>> factors_of(order_.size());
  std::vector<std::uint32_t> constants;
  std::vector<std::vector<std::int32_t>> free(scopes.count());
  for (std::size_t number = 0; number < scopes.count(); ++number) {
    for (const std::int32_t v : scopes[number])
      if (ranks[v] >= 0) free[number].push_back(v);
    std::ranges::sort(free[number], by_rank);
    if (free[number].empty()) constants.push_back(std::uint32_t(number));
    else factors_of[ranks[free[number].front()]].push_back(std::uint32_t(number));
  }
  std::vector<std::int64_t> begins{0};
  for (std::size_t number = 0; number < scopes.count(); ++number)
    begins.push_back(begins.back() + cells_of(scopes[number], sizes_));
  const auto add_source = [&](std::uint32_t number) {
    const std::span scope = scopes[number];
    std::vector<std::int64_t> strides(scope.size());
    std::int64_t stride = 1;
    for (std::size_t axis = scope.size(); axis-- > 0; stride *= sizes_[scope[axis]]) strides[axis] = stride;
    Source source{};
    source.begin = begins[number], source.target = factor_cells_, source.cells = cells_of(free[number], sizes_);
    source.first_free = std::uint32_t(source_axes_.size());
    for (const std::int32_t v : free[number])
      source_axes_.push_back({v, strides[std::size_t(std::ranges::find(scope, v) - scope.begin())]});
    source.last_free = std::uint32_t(source_axes_.size());
    for (std::size_t axis = 0; axis < scope.size(); ++axis)
      if (ranks[scope[axis]] < 0) source_axes_.push_back({scope[axis], strides[axis]});
    source.last_given = std::uint32_t(source_axes_.size());
    factor_cells_ += source.cells;
    sources_.push_back(source);
    return source;
  };
  for (const std::uint32_t number : constants) add_source(number);
  constants_ = constants.size();
  std::map<Runs, std::uint32_t> numbers;
  const auto runs_number = [&](std::span<const std::int32_t> whole, std::span<const std::int32_t> part) {
    const auto [entry, is_new] = numbers.try_emplace(runs_of(whole, part, sizes_), std::uint32_t(runs_.size()));
    if (is_new) runs_.push_back(entry->first);
    return entry->second;
  };
  std::vector<std::vector<std::int32_t>> separators(order_.size());
  std::vector<std::vector<std::int32_t>> children(order_.size());
  std::vector<std::int32_t> clique;
  Looks looks(64);
  for (std::size_t number = 0; number < order_.size(); ++number) {
    looks.look();
    Node& node = nodes_[number];
    clique.clear();
    for (const std::uint32_t factor : factors_of[number])
      clique.insert(clique.end(), free[factor].begin(), free[factor].end());
    for (const std::int32_t child : children[number])
      clique.insert(clique.end(), separators[child].begin(), separators[child].end());
    clique.push_back(order_[number]);
    std::ranges::sort(clique, by_rank);
    clique.erase(std::ranges::unique(clique).begin(), clique.end());
    const std::int64_t cells = cells_of(clique, sizes_);
    joined_cells_ += cells;
    const std::span separator = std::span(clique).subspan(1);
    std::int64_t sums = 0;
    const auto add_table = [&](bool is_message, std::int64_t offset, std::span<const std::int32_t> scope) {
      const auto first = std::uint32_t(axes_.size());
      std::int64_t stride = cells_of(scope, sizes_);
      const std::int64_t table_cells = stride, own_stride = stride /= sizes_[scope.front()];
      for (const std::int32_t v : scope.subspan(1)) axes_.push_back({v, stride /= sizes_[v]});
      tables_.push_back({is_message, runs_number(separator, scope.subspan(1)), first, std::uint32_t(axes_.size()),
                         offset, table_cells, own_stride});
      if (is_message) sums += table_cells;
    };
    node.first_table = std::uint32_t(tables_.size());
    for (const std::int32_t child : children[number]) {
      add_table(true, nodes_[child].message, separators[child]);
      std::vector<std::int32_t>().swap(separators[child]);
    }
    for (const std::uint32_t factor : factors_of[number]) add_table(false, add_source(factor).target, free[factor]);
    node.last_table = std::uint32_t(tables_.size());
    separators[number].assign(clique.begin() + 1, clique.end());
    node.parent = clique.size() > 1 ? ranks[clique[1]] : -1;
    if (node.parent >= 0) children[node.parent].push_back(std::int32_t(number));
    node.message = message_cells_;
    node.cells = cells / sizes_[order_[number]];
    message_cells_ += node.cells;
    largest_row_ = std::max(largest_row_, node.cells);
    largest_sums_ = std::max({largest_sums_, sums, sizes_[order_[number]]});
  }
}

void ConditionedTree::reduce(std::span<const double> values, std::span<const std::int32_t> states,
                             TreeTables& tables) const {
  tables.factors.resize(std::size_t(factor_cells_));
  for (const Source& source : sources_) {
    const double* from = values.data() + source.begin;
    for (std::uint32_t axis = source.last_free; axis < source.last_given; ++axis)
      from += source_axes_[axis].stride * states[source_axes_[axis].variable];
    double* to = tables.factors.data() + source.target;
    const std::uint32_t axes = source.last_free - source.first_free;
    const Axis* free = source_axes_.data() + source.first_free;
    if (axes == 0) {
      *to = *from;
      continue;
    }
    const std::int64_t fast = sizes_[free[axes - 1].variable], stride = free[axes - 1].stride;
    std::array<std::int64_t, 64> digits{};
    for (std::int64_t cell = 0;;) {
      for (std::int64_t x = 0; x < fast; ++x) to[cell + x] = from[x * stride];
      if ((cell += fast) == source.cells) break;
      for (std::uint32_t axis = axes - 1; axis-- > 0;) {
        from += free[axis].stride;
        if (++digits[axis] < sizes_[free[axis].variable]) break;
        from -= free[axis].stride * digits[axis];
        digits[axis] = 0;
      }
    }
  }
}

void ConditionedTree::join(const Node& node, std::int64_t state, double* row, const TreeTables& tables) const {
  if (node.first_table == node.last_table) std::fill_n(row, node.cells, 1.0);
  for (std::uint32_t at = node.first_table; at < node.last_table; ++at) {
    const Table& table = tables_[at];
    const double* const values = cells_of_table(table, tables) + state * table.stride;
    if (at == node.first_table) set_to(row, runs_[table.runs], values);
    else multiply_by(row, runs_[table.runs], values);
  }
}

double ConditionedTree::collect(std::span<const double> values, std::span<const std::int32_t> states,
                                TreeTables& tables) const {
  reduce(values, states, tables);
  tables.messages.resize(std::size_t(message_cells_));
  tables.row.resize(std::size_t(largest_row_));
  tables.log_scales.assign(nodes_.size(), -kUnlimited);
  double log = 0;
  for (std::size_t constant = 0; constant < constants_; ++constant) log += std::log(tables.factors[constant]);
  for (std::size_t number = 0; number < nodes_.size() && log > -kUnlimited; ++number) {
    const Node& node = nodes_[number];
    double *const message = tables.messages.data() + node.message, *const row = tables.row.data();
    join(node, 0, message, tables);
    for (std::int64_t x = 1; x < sizes_[order_[number]]; ++x) {
      join(node, x, row, tables);
      for (std::int64_t cell = 0; cell < node.cells; ++cell) message[cell] += row[cell];
    }
    const double peak = largest_of({message, std::size_t(node.cells)});
    if (!(peak > 0)) return -kUnlimited;
    const double scale = 1 / peak;
    for (std::int64_t cell = 0; cell < node.cells; ++cell) message[cell] *= scale;
    tables.log_scales[number] = std::log(peak);
    log += tables.log_scales[number];
  }
  return log;
}

bool ConditionedTree::is_accurate(const TreeTables& tables) const {
  // A message of zeros ends an upward pass, so later nodes have no scales.
  const auto unfinished = std::ranges::find(tables.log_scales, -kUnlimited) - tables.log_scales.begin();
  const bool is_zero = std::size_t(unfinished) < nodes_.size();
  const std::size_t joined = std::size_t(unfinished) + is_zero;
  // Logarithm of the product of all scales below 1 on the path from each node to its root.
  std::vector<double> paths(nodes_.size());
  for (std::size_t number = joined; number-- > 0;) {
    const Node& node = nodes_[number];
    if (!is_zero) {
      paths[number] = std::min(0.0, tables.log_scales[number]) + (node.parent < 0 ? 0.0 : paths[node.parent]);
      if (paths[number] > kLeastLogScales) continue;
    }
    double product = 1;
    for (std::uint32_t at = node.first_table; at < node.last_table; ++at) {
      const double* const cells = cells_of_table(tables_[at], tables);
      double least = 1;
      for (std::int64_t cell = 0; cell < tables_[at].cells; ++cell)
        least = std::min(least, cells[cell] > 0 ? cells[cell] : 1.0);
      product *= least;
    }
    if (product < kLeastProduct) return false;
  }
  return true;
}

void ConditionedTree::draw(std::span<std::int32_t> states, Call<double()> uniform, TreeTables& tables) const {
  auto& shares = tables.sums;
  for (std::size_t number = nodes_.size(); number-- > 0;) {
    const Node& node = nodes_[number];
    const std::int64_t size = sizes_[order_[number]];
    shares.assign(std::size_t(size), 1.0);
    for (std::uint32_t at = node.first_table; at < node.last_table; ++at) {
      const Table& table = tables_[at];
      const double* cells = cells_of_table(table, tables);
      for (std::uint32_t axis = table.first_axis; axis < table.last_axis; ++axis)
        cells += axes_[axis].stride * states[axes_[axis].variable];
      for (std::int64_t x = 0; x < size; ++x) shares[std::size_t(x)] *= cells[x * table.stride];
    }
    double remaining = uniform() * sum_of(shares);
    std::int32_t state = std::int32_t(std::ranges::max_element(shares) - shares.begin());
    // Rounding may leave a remainder beyond the last possible state: then the most likely state is taken.
    for (std::int64_t x = 0; x < size; ++x) {
      if (!(shares[std::size_t(x)] > 0) || (remaining -= shares[std::size_t(x)]) >= 0) continue;
      state = std::int32_t(x);
      break;
    }
    states[order_[number]] = state;
  }
}

void ConditionedTree::add_marginals(double weight, std::span<double> sums, TreeTables& tables) const {
  std::vector<double> shares;
  tables.row.resize(std::size_t(largest_row_));
  double* const row = tables.row.data();
  for (std::size_t number = nodes_.size(); number-- > 0;) {
    const Node& node = nodes_[number];
    const std::int32_t v = order_[number];
    shares.assign(std::size_t(sizes_[v]), 0.0);
    tables.sums.assign(std::size_t(largest_sums_), 0.0);
    const double* const above = tables.messages.data() + node.message;
    for (std::int64_t x = 0; x < sizes_[v]; ++x) {
      join(node, x, row, tables);
      if (node.parent >= 0)
        for (std::int64_t cell = 0; cell < node.cells; ++cell) row[cell] *= above[cell];
      shares[std::size_t(x)] = sum_of({row, std::size_t(node.cells)});
      double* below = tables.sums.data();
      for (std::uint32_t at = node.first_table; at < node.last_table; ++at) {
        const Table& table = tables_[at];
        if (!table.is_message) continue;
        add_up(row, runs_[table.runs], below + x * table.stride);
        below += table.cells;
      }
    }
    const double total = sum_of(shares);
    if (!(total > 0)) continue;
    for (std::int64_t x = 0; x < sizes_[v]; ++x)
      sums[std::size_t(begins_[v] + x)] += weight / total * shares[std::size_t(x)];
    const double* below = tables.sums.data();
    for (std::uint32_t at = node.first_table; at < node.last_table; ++at) {
      const Table& table = tables_[at];
      if (!table.is_message) continue;
      double* const message = tables.messages.data() + table.offset;
      double peak = 0;
      for (std::int64_t cell = 0; cell < table.cells; ++cell) {
        message[cell] = message[cell] > kLeastProduct ? below[cell] / message[cell] : 0;
        peak = std::max(peak, message[cell]);
      }
      below += table.cells;
      if (!(peak > 0)) continue;
      for (std::int64_t cell = 0; cell < table.cells; ++cell) message[cell] /= peak;
    }
  }
}

}  // namespace elimina::approx
