#include "cases/passes.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace elimina {
namespace {

constexpr i64 kFastCells = 512;
constexpr i64 kWeightOne = std::bit_cast<i64>(1.0);
constexpr i64 kUnit = 8;    // large tables start at a multiple of this number of elements
constexpr i64 kLarge = 32;  // number of elements of the smallest large table

}  // namespace

bool CasePasses::write(const order::Order& order, CaseProgram& program) {
  program.words.clear(), program.starts.clear(), program.least.clear(), program.reads.clear();
  program.marginals.clear(), program.roots.clear(), program.outputs.clear();
  program.work = 0;
  program.upward = 0;
  program.largest = 1;
  program.end = given_.first;
  number_variables(order);
  place_factors();
  std::vector<int> along(order.size()), wanted;
  std::iota(along.begin(), along.end(), 0);
  for (const i64 v : given_.asked)
    if (position_[v] >= 0) wanted.push_back(position_[v]);
  const plan::Tree tree = plan::bucket_tree(scopes_, std::move(along), {}, i64(order.size()), {}, nullptr);
  const plan::StepRules rules{.tables = plan::kMostTables, .is_split = false};
  const plan::Steps steps = plan::both_passes(tree, scopes_, sizes_, rules, wanted);
  for (i64 number = 0; number < i64(steps.steps.size()); ++number)
    if (!append(steps, number, program)) return false;
  list_outputs(steps, program);
  program.width = tree.width();
  return true;
}

void CasePasses::number_variables(const order::Order& order) {
  variables_ = order;
  position_.assign(given_.sizes.size(), -1);
  sizes_.clear();
  along_.resize(order.size());
  place_.resize(order.size());
  for (const order::Vertex v : order) {
    position_[v] = int(sizes_.size());
    sizes_.push_back(given_.sizes[v]);
  }
}

void CasePasses::place_factors() {
  tables_.clear(), strides_.clear();
  scopes_.items.clear();
  scopes_.starts.assign(1, 0);
  for (i64 f = 0; f < given_.factors(); ++f) {
    axes_.clear();
    for (i64 i = given_.scopes.starts[f]; i < given_.scopes.starts[f + 1]; ++i)
      if (const int v = position_[given_.scopes.items[i]]; v >= 0) axes_.emplace_back(v, given_.strides[i]);
    if (axes_.empty()) continue;
    std::sort(axes_.begin(), axes_.end());
    tables_.push_back({1, given_.offsets[f], f, i64(strides_.size())});
    for (const auto& [v, stride] : axes_) {
      tables_.back().cells *= double(sizes_[v]);
      strides_.push_back(stride);
      scopes_.add(v);
    }
    scopes_.close();
  }
  factors_ = i64(tables_.size());
}

bool CasePasses::append(const plan::Steps& steps, i64 number, CaseProgram& program) {
  const plan::Step& step = steps.steps[number];
  const auto scope = steps.scopes[step.scope];
  const auto reads = steps.reads_of(number);
  double cells = 1;
  for (const int v : scope) cells *= double(sizes_[v]);
  if (cells >= kLarge) program.end = (program.end + kUnit - 1) / kUnit * kUnit;
  if (cells + double(program.end) > double(given_.last)) return false;
  arrange(steps, scope, reads);
  tables_.push_back({cells, program.end, -1, i64(strides_.size())});
  record_.start(step.variable < 0 ? step.variable : i64(variables_[step.variable]), step.domain, program.end,
                kWeightOne);
  i64 stride = 1;
  for (std::size_t place = sequence_.size(); place-- > 0; stride *= sizes_[sequence_[place]])
    along_[sequence_[place]] = stride;
  for (const int axis : sequence_) {
    place_[axis] = record_.axes();
    record_.add_axis(sizes_[axis], along_[axis], i64(variables_[axis]));
  }
  for (const int axis : scope) strides_.push_back(along_[axis]);
  record_.split(record_.axes(), first_lo());
  double least = 0;
  for (const plan::Read& read : reads) {
    add_table(steps, read, step.variable);
    if (read.source < 0) least += given_.least[table_of(read).factor];
  }
  program.starts.push_back(i64(program.words.size()));
  program.least.push_back(least);
  const std::vector<i64>& places = record_.append_to(program.words);
  for (std::size_t i = 0; i < reads.size(); ++i)
    if (reads[i].source < 0) program.reads.push_back({places[i] + kOffset, table_of(reads[i]).factor});
  program.work += cells * double(step.domain) * (1 + 0.5 * double(record_.streamed()));
  program.end += i64(cells);
  program.largest = std::max(program.largest, i64(cells));
  return true;
}

// The output's axes, slow to fast, in the order of the largest table, which is then read in its own order.
void CasePasses::arrange(const plan::Steps& steps, std::span<const int> scope, std::span<const plan::Read> reads) {
  sequence_.assign(scope.begin(), scope.end());
  for (const int axis : scope) along_[axis] = std::numeric_limits<i64>::max();
  const plan::Read* largest = nullptr;
  double most = 0;
  for (const plan::Read& read : reads)
    if (const double cells = table_of(read).cells; cells > most) most = cells, largest = &read;
  if (!largest) return;
  const i64* own = strides_.data() + table_of(*largest).strides;
  for (const int v : steps.scopes[largest->scope]) along_[v] = *own++;
  // The axes are few and nearly sorted, so insertion sort is fastest.
  for (std::size_t i = 1; i < sequence_.size(); ++i) {
    const int axis = sequence_[i];
    std::size_t place = i;
    for (; place > 0 && along_[sequence_[place - 1]] < along_[axis]; --place) sequence_[place] = sequence_[place - 1];
    sequence_[place] = axis;
  }
}

// Position of the first fast axis: the last axes are fast as long as they have at most kFastCells cells.
i64 CasePasses::first_lo() const {
  i64 first = i64(sequence_.size());
  for (i64 cells = 1; first > 0 && cells * sizes_[sequence_[first - 1]] <= kFastCells; --first)
    cells *= sizes_[sequence_[first - 1]];
  return first;
}

void CasePasses::add_table(const plan::Steps& steps, const plan::Read& read, int variable) {
  const Table& table = table_of(read);
  const i64* own = strides_.data() + table.strides;
  const auto scope = steps.scopes[read.scope];
  const auto eliminated = std::find(scope.begin(), scope.end(), variable);
  i64* strides =
      record_.add_table(table.offset, eliminated == scope.end() ? 0 : own[eliminated - scope.begin()], read.source);
  for (const int v : scope) {
    if (v != variable) strides[place_[v]] = *own;
    ++own;
  }
}

void CasePasses::list_outputs(const plan::Steps& steps, CaseProgram& program) const {
  std::size_t next = 0;
  for (const plan::Output& output : steps.outputs) {
    program.outputs.push_back(output.step);
    if (output.variable >= 0) continue;
    program.roots.push_back(output.step);
    program.upward = output.step + 1;  // in the end, the number of upward steps: the last node is a root
    ++next;
  }
  for (std::size_t n = 0; n < given_.asked.size(); ++n) {
    const i64 variable = given_.asked[n];
    const bool is_observed = position_[variable] < 0;
    program.marginals.push_back(
        {variable, is_observed ? -1 : tables_[factors_ + steps.outputs[next++].step].offset, given_.places[n]});
  }
}

}  // namespace elimina
