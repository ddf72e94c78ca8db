#include "cases/plan.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include "cases/passes.hpp"
#include "order/greedy.hpp"
#include "order/reduce.hpp"

namespace elimina {
namespace {

constexpr double kTrySeconds = 1.5e-6;   // seconds of a greedy run for each variable
constexpr double kCellSeconds = 1.5e-9;  // seconds of both passes for each cell of a clique
constexpr double kTryShare = 0.1;        // share of a run's time that the search for an order may take
constexpr i64 kMostTries = 64, kFewTries = 3;
constexpr double kTryGain = 16;  // largest factor by which more tries may reduce the work of the first order

// Returns the best of a few greedy orders of the reduced graph; the larger the work, the more orders are tried.
// Messages have at most `cells` cells. Returns nullopt if a plan within the limit on work is out of reach.
std::optional<order::Order> find_order(order::Graph whole, i64 cells, double most_work) {
  using namespace order;
  constexpr Rule rules[] = {Rule::weighted_min_fill, Rule::min_weight, Rule::min_fill};
  Clock clock(std::numeric_limits<double>::infinity());
  Random random(0);
  Remainder rest(std::move(whole));
  Order result = reduce(rest, clock), best;
  if (rest.remaining() == 0) return result;
  const auto [graph, names] = std::move(rest).graph();
  double work = std::log2(kTryGain * most_work), largest = 0;
  for (i64 attempt = 0; attempt < kMostTries; ++attempt) {
    if (attempt >= kFewTries && largest > std::log2(double(cells))) break;
    if (attempt && double(attempt) * kTrySeconds * graph.count() > kTryShare * kCellSeconds * std::exp2(work)) break;
    const double noise = attempt < 3 ? 0 : 0.05 * double(attempt / 3 % 4);
    auto sequence = greedy(graph, rules[attempt % 3], noise, work, random, clock);
    if (!sequence && attempt == 0) return std::nullopt;
    if (!sequence) continue;
    best = std::move(*sequence);
    const Cost cost = cost_of(graph, best);
    work = cost.total, largest = cost.largest;
  }
  for (const Vertex v : best) result.push_back(names[v]);
  return result;
}

}  // namespace

CasePlanner::CasePlanner(CaseTables tables)
    : tables_(std::move(tables)), passes_(std::make_unique<CasePasses>(tables_)) {
  const std::vector<double> sizes(tables_.sizes.begin(), tables_.sizes.end());
  const std::vector<order::Vertex> members(tables_.scopes.items.begin(), tables_.scopes.items.end());
  graph_ = order::moral_graph(sizes, {tables_.scopes.starts.begin(), tables_.scopes.starts.end()}, members);
}

CasePlanner::~CasePlanner() = default;

const CaseProgram* CasePlanner::plan(const int* values, double most_work) {
  bool same = !observed_.empty();
  for (std::size_t v = 0; same && v < observed_.size(); ++v) same = observed_[v] == (values[v] >= 0);
  if (!same) make(values, most_work);
  if (!fits_ || program_.work > most_work) return nullptr;
  point(program_, values);
  return &program_;
}

bool CasePlanner::write(const order::Order& order, CaseProgram& program) const {
  if (!passes_->write(order, program)) return false;
  point(program, std::vector<int>(tables_.sizes.size(), -1).data());
  return true;
}

void CasePlanner::make(const int* values, double most_work) {
  fits_ = false;
  observed_.resize(tables_.sizes.size());
  for (std::size_t v = 0; v < observed_.size(); ++v) observed_[v] = values[v] >= 0;
  std::vector<order::Vertex> unobserved;
  std::vector<char> seen(observed_.size());
  for (const i64 v : tables_.scopes.items)
    if (!observed_[v] && !std::exchange(seen[v], 1)) unobserved.push_back(order::Vertex(v));
  auto sequence = find_order(order::induced(graph_, unobserved), tables_.last - tables_.first, most_work);
  if (!sequence) return;
  for (order::Vertex& v : *sequence) v = unobserved[v];
  fits_ = passes_->write(*sequence, program_);
}

void CasePlanner::point(CaseProgram& program, const int* values) const {
  program.constants.clear();
  std::vector<i64> offsets = tables_.offsets;
  for (i64 f = 0; f < tables_.factors(); ++f) {
    bool constant = true;
    for (i64 i = tables_.scopes.starts[f]; i < tables_.scopes.starts[f + 1]; ++i) {
      const int value = values[tables_.scopes.items[i]];
      constant = constant && value >= 0;
      if (value > 0) offsets[f] += value * tables_.strides[i];
    }
    if (constant) program.constants.push_back(offsets[f]);
  }
  for (const auto& read : program.reads) program.words[read.word] = offsets[read.factor];
}

}  // namespace elimina
