#include "cases/network.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "elimina/program.hpp"
#include "exec/paths.hpp"
#include "stop.hpp"

namespace elimina {
namespace {

constexpr i64 kVector = 8;            // large tables start at a multiple of this number of elements
constexpr i64 kBlock = i64{1} << 16;  // number of cells that are encoded at a time

}  // namespace

CaseNetwork::CaseNetwork(const tables::Tables& tables, tables::Sense sense, tables::Rule rule, std::vector<i64> sizes,
                         i64 cells, double work, bool posteriors)
    : sizes_(std::move(sizes)), most_work_(work) {
  std::vector<char> covered(sizes_.size());
  i64 all = 0;
  for (i64 f = 0; f < tables.size(); ++f) {
    all += std::min(tables.cells(f), cells + 1) + kVector;
    for (const int v : tables.scope(f)) covered[v] = 1;
  }
  usable_ = all <= cells && std::find(covered.begin(), covered.end(), 0) == covered.end();
  if (!usable_) return;
  CaseTables case_tables;
  case_tables.sizes = sizes_;
  encode(tables, sense, rule, case_tables);
  case_tables.first = i64(arena_.size());
  case_tables.last = cells;
  i64 offset = 0;
  for (i64 v = 0; posteriors && v < i64(sizes_.size()); offset += sizes_[v++]) {
    case_tables.asked.push_back(v);
    case_tables.answer_offsets.push_back(offset);
  }
  shares_ = offset;
  planner_.emplace(std::move(case_tables));
}

void CaseNetwork::encode(const tables::Tables& tables, tables::Sense sense, tables::Rule rule,
                         CaseTables& case_tables) {
  const i64 count = tables.size();
  i64 end = 0;
  for (i64 f = 0; f < count; ++f) {
    const auto scope = tables.scope(f);
    const auto table_sizes = tables.sizes(f);
    if (tables.cells(f) >= kVector) end = (end + kVector - 1) / kVector * kVector;
    case_tables.offsets.push_back(end);
    case_tables.scopes.append(scope);
    case_tables.strides.resize(case_tables.scopes.items.size());
    i64 stride = 1;
    for (i64 a = i64(scope.size()) - 1; a >= 0; stride *= table_sizes[a--])
      case_tables.strides[case_tables.scopes.starts[f] + a] = stride;
    end += tables.cells(f);
  }
  arena_.resize(end);
  std::vector<i64> starts(count + 1), own_sizes;
  std::iota(starts.begin(), starts.end(), i64(0));
  const std::vector<int> members(starts.begin(), starts.end() - 1);
  for (const int v : case_tables.scopes.items) own_sizes.push_back(sizes_[v]);
  const tables::FactorArrays factors{starts,
                                     members,
                                     case_tables.scopes.starts,
                                     case_tables.scopes.items,
                                     own_sizes,
                                     case_tables.strides,
                                     case_tables.offsets};
  const std::span<const i64> numbers(starts.data(), count);
  const auto written = tables::encode(tables, sense, rule, 0, factors, numbers, tables::Number::f64,
                                      reinterpret_cast<char*>(arena_.data()), kBlock, 1);
  exponent_ = std::accumulate(written.exponents.begin(), written.exponents.end(), i64(0));
  usable_ = std::find(written.exact.begin(), written.exact.end(), 0) == written.exact.end();
  case_tables.least.assign(count, 0);
  for (std::size_t f = 0; f < written.exponents.size(); ++f) {
    const double low = written.ranges[2 * f + 1];
    case_tables.least[f] = low > 0 ? double(std::ilogb(low)) : std::numeric_limits<double>::infinity();
  }
}

bool CaseNetwork::keep(const std::vector<int>& order) {
  CaseProgram program;
  if (!usable_ || !planner_->write(order::Order(order.begin(), order.end()), program) || program.work > most_work_)
    return false;
  kept_ = std::move(program);
  arena_.resize(std::max(kept_->end, i64(arena_.size())));
  peaks_.assign(2 * kept_->steps(), 0);
  executor_ =
      std::make_unique<DenseExecutor>(DenseRun{SemiringKind::sum_product, ValueKind::float64, 0, 0, kept_->words.data(),
                                               kept_->starts.data(), kept_->steps(), arena_.data(), peaks_.data(), 1},
                                      kept_->outputs);
  return true;
}

// If a program is kept, runs that, restricted to the unobserved variables. Otherwise runs `program`, in an arena that
// grows if necessary. Returns false if `poll` stopped the run.
bool CaseNetwork::run(const CaseProgram& program, const int* values, const DensePoll& poll) {
  count_path(Path::case_network);
  if (kept_) {
    executor_->fix(values, i64(sizes_.size()));
    return executor_->run(nullptr, program.steps(), poll);
  }
  if (!executor_ || program.end > i64(arena_.size())) {
    arena_.resize(std::max(program.end, i64(arena_.size())));
    executor_ = std::make_unique<DenseExecutor>(
        DenseRun{SemiringKind::sum_product, ValueKind::float64, 0, 0, nullptr, nullptr, 0, arena_.data(), nullptr, 1},
        std::span<const i64>());
  }
  peaks_.resize(2 * program.steps());
  return executor_->run_other(program.words.data(), program.starts.data(), program.steps(), peaks_.data(), poll);
}

std::optional<CasePosteriors> CaseNetwork::answer(const int* values, const DensePoll& poll) {
  const CaseProgram* program = kept_ ? &*kept_ : usable_ ? planner_->plan(values, most_work_) : nullptr;
  if (!program) return std::nullopt;
  if (!run(*program, values, poll)) throw Stopped{};
  CasePosteriors posteriors{
      std::vector<double>(shares_), 0, 0, program->width, program->largest, program->work, program->end};
  const CaseAnswer answer = read_case(*program, planner_->tables(), values, ValueKind::float64, arena_.data(),
                                      peaks_.data(), posteriors.shares.data());
  if (!answer.sound) return std::nullopt;
  posteriors.log_sum = answer.log_sum + double(exponent_) * std::numbers::ln2;
  posteriors.sum = std::ldexp(answer.sum, int(exponent_));
  if (shares_) divide(posteriors.shares);
  return posteriors;
}

void CaseNetwork::divide(std::vector<double>& zone) const {
  double* marginal = zone.data();
  for (const i64 size : sizes_) {
    const double high = *std::max_element(marginal, marginal + size);
    double sum = 0;
    for (i64 x = 0; x < size; ++x) sum += marginal[x] /= high;
    for (i64 x = 0; x < size; ++x) marginal[x] /= sum;
    marginal += size;
  }
}

}  // namespace elimina
