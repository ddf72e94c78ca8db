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
  program.end = case_tables_.first;
  number_variables(order);
  place_factors();
  std::vector<int> along(order.size()), wanted;
  std::iota(along.begin(), along.end(), 0);
  for (const i64 v : case_tables_.asked)
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
  position_.assign(case_tables_.sizes.size(), -1);
  sizes_.clear();
  along_.resize(order.size());
  axis_.resize(order.size());
  for (const order::Vertex v : order) {
    position_[v] = int(sizes_.size());
    sizes_.push_back(case_tables_.sizes[v]);
  }
}

void CasePasses::place_factors() {
  tables_.clear(), strides_.clear();
  scopes_.items.clear();
  scopes_.starts.assign(1, 0);
  for (i64 f = 0; f < case_tables_.factors(); ++f) {
    axes_.clear();
    for (i64 i = case_tables_.scopes.starts[f]; i < case_tables_.scopes.starts[f + 1]; ++i)
      if (const int v = position_[case_tables_.scopes.items[i]]; v >= 0) axes_.emplace_back(v, case_tables_.strides[i]);
    if (axes_.empty()) continue;
    std::sort(axes_.begin(), axes_.end());
    tables_.push_back({1, case_tables_.offsets[f], f, i64(strides_.size())});
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
  if (cells + double(program.end) > double(case_tables_.last)) return false;
  arrange(steps, scope, reads);
  tables_.push_back({cells, program.end, -1, i64(strides_.size())});
  record_.start(step.variable < 0 ? step.variable : i64(variables_[step.variable]), step.domain, program.end,
                kWeightOne);
  i64 stride = 1;
  for (std::size_t position = sequence_.size(); position-- > 0; stride *= sizes_[sequence_[position]])
    along_[sequence_[position]] = stride;
  for (const int axis : sequence_) {
    axis_[axis] = record_.axes();
    record_.add_axis(sizes_[axis], along_[axis], i64(variables_[axis]));
  }
  for (const int axis : scope) strides_.push_back(along_[axis]);
  record_.split(record_.axes(), first_lo());
  double least = 0;
  for (const plan::Read& read : reads) {
    add_table(steps, read, step.variable);
    if (read.source < 0) least += case_tables_.least[table_of(read).factor];
  }
  program.starts.push_back(i64(program.words.size()));
  program.least.push_back(least);
  const std::vector<i64>& offsets = record_.append_to(program.words);
  for (std::size_t i = 0; i < reads.size(); ++i)
    if (reads[i].source < 0) program.reads.push_back({offsets[i] + kOffset, table_of(reads[i]).factor});
  program.work += cells * double(step.domain) * (1 + 0.5 * double(record_.streamed()));
  program.end += i64(cells);
  program.largest = std::max(program.largest, i64(cells));
  return true;
}

// Lists the output's axes, slow to fast, in the order that they have in the largest table. That table is then read
// sequentially.
void CasePasses::arrange(const plan::Steps& steps, std::span<const int> scope, std::span<const plan::Read> reads) {
  sequence_.assign(scope.begin(), scope.end());
  for (const int axis : scope) along_[axis] = std::numeric_limits<i64>::max();
  const plan::Read* largest = nullptr;
  double largest_cells = 0;
  for (const plan::Read& read : reads)
    if (const double cells = table_of(read).cells; cells > largest_cells) largest_cells = cells, largest = &read;
  if (!largest) return;
  const i64* stride = strides_.data() + table_of(*largest).strides;
  for (const int v : steps.scopes[largest->scope]) along_[v] = *stride++;
  // The axes are few and nearly sorted, so insertion sort is fastest.
  for (std::size_t i = 1; i < sequence_.size(); ++i) {
    const int axis = sequence_[i];
    std::size_t slot = i;
    for (; slot > 0 && along_[sequence_[slot - 1]] < along_[axis]; --slot) sequence_[slot] = sequence_[slot - 1];
    sequence_[slot] = axis;
  }
}

// Returns the position of the first fast axis: the last axes are fast as long as they have at most kFastCells cells.
i64 CasePasses::first_lo() const {
  i64 first = i64(sequence_.size());
  for (i64 cells = 1; first > 0 && cells * sizes_[sequence_[first - 1]] <= kFastCells; --first)
    cells *= sizes_[sequence_[first - 1]];
  return first;
}

void CasePasses::add_table(const plan::Steps& steps, const plan::Read& read, int variable) {
  const Table& table = table_of(read);
  const i64* stride = strides_.data() + table.strides;
  const auto scope = steps.scopes[read.scope];
  const auto eliminated = std::find(scope.begin(), scope.end(), variable);
  i64* strides =
      record_.add_table(table.offset, eliminated == scope.end() ? 0 : stride[eliminated - scope.begin()], read.source);
  for (const int v : scope) {
    if (v != variable) strides[axis_[v]] = *stride;
    ++stride;
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
  for (std::size_t n = 0; n < case_tables_.asked.size(); ++n) {
    const i64 variable = case_tables_.asked[n];
    const bool is_observed = position_[variable] < 0;
    program.marginals.push_back({variable, is_observed ? -1 : tables_[factors_ + steps.outputs[next++].step].offset,
                                 case_tables_.answer_offsets[n]});
  }
}

}  // namespace elimina
