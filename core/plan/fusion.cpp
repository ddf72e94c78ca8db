#include "plan/fusion.hpp"

#include "plan/arena.hpp"

namespace elimina::plan {
namespace {

// Constants tuned on the CPU and on an H200 (bench/fused.py). The first is the smallest number of cells of a message
// that a wider step avoids.
constexpr i64 kFusedCells = i64{1} << 20;
constexpr i64 kFusedDomain = 16;  // largest number of combinations of values that one step eliminates
constexpr i64 kFusedWork = 4;     // largest number of combinations that fusion adds for each cell of a message saved
constexpr i64 kSpreadGain = 256;  // least ratio of a message to a table that is extended to all variables (in cells)

}  // namespace

bool is_spread(std::span<const int> scope, std::span<const int> variables, std::span<const i64> sizes) {
  if (scope.size() < variables.size() || !std::equal(variables.begin(), variables.end(), scope.begin())) return false;
  std::vector<i64> axis_sizes;
  for (const int v : scope) axis_sizes.push_back(sizes[v]);
  std::vector<i64> strides(axis_sizes.size());
  lay_out_table(axis_sizes, 1, -1, strides);  // one-byte numbers have the largest padding
  for (std::size_t axis = 0; axis + 1 < variables.size(); ++axis)
    if (strides[axis] != strides[axis + 1] * axis_sizes[axis + 1]) return false;
  return true;
}

bool Fusion::pays(int number, const std::vector<Read>& reads, const Lists& scopes) const {
  const int parent = tree_.parents[number];
  if (parent < 0 || waiting_.count(parent)) return false;
  const i64 message = cells_of(tree_.separators[number], sizes_), out = cells_of(tree_.separators[parent], sizes_);
  if (message < kFusedCells || message > kHopelessWork || out > message) return false;
  std::vector<int> all = variables(number);
  all.push_back(tree_.variables[parent]);
  const i64 last_size = sizes_[all.back()], domain = cells_of(all, sizes_);
  if (domain > kFusedDomain || domain * out > domain / last_size * message + last_size * out + kFusedWork * message)
    return false;
  std::vector<std::span<const int>> tables;
  for (const Read& read : reads) tables.push_back(scopes[read.scope]);
  for (const int f : tree_.factors[parent]) tables.push_back(scopes[f]);
  for (const int child : tree_.children[parent])
    if (child != number) tables.push_back(tree_.separators[child]);
  return tables.size() <= tables_ && std::all_of(tables.begin(), tables.end(), [&](const auto& scope) {
           return is_spread(scope, all, sizes_) ||
                  times(times(cells_of(scope, sizes_), domain), kSpreadGain) <= message;
         });
}

void Fusion::wait(int number, std::vector<Read> reads) {
  waiting_[tree_.parents[number]] = {number, variables(number), std::move(reads)};
}

bool Fusion::waits(int number) const {
  const auto entry = waiting_.find(tree_.parents[number]);
  return entry != waiting_.end() && entry->second.node == number;
}

std::vector<Read> Fusion::remove(int number) {
  const auto entry = waiting_.find(number);
  return entry == waiting_.end() ? std::vector<Read>() : std::move(entry->second.reads);
}

std::vector<int> Fusion::variables(int number) const {
  const auto entry = waiting_.find(number);
  std::vector<int> all = entry == waiting_.end() ? std::vector<int>() : entry->second.variables;
  all.push_back(tree_.variables[number]);
  return all;
}

}  // namespace elimina::plan
