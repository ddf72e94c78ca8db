// Both passes over the bucket tree of an order, as records.
#include <algorithm>
#include <bit>
#include <limits>

#include "case_plan.hpp"
#include "elimina/program.hpp"
#include "plan/steps.hpp"
#include "step_record.hpp"
#include "variable_set.hpp"

namespace elimina {
namespace {

constexpr i64 kLoCells = 512;
constexpr i64 kWeightOne = std::bit_cast<i64>(1.0);
constexpr i64 kUnit = 8;                 // elements that a large table starts at a multiple of, and
constexpr i64 kLarge = 32;               // elements of the smallest such table

template <std::size_t Words>
class Passes final : public CasePasses {
  using Set = VariableSet<Words>;
  using Tables = std::vector<int>;

 public:
  explicit Passes(const CaseModel& model) : model_(model), position_(model.sizes.size()) {}

  void write(const order::Order& order, CaseProgram& program) override {
    program_ = &program;
    begin(order);
    place_factors();
    towards_roots();
    outward();
    program.end = end_;
  }

 private:
  // A factor or a message without what is observed; variables are numbered by their place in the order.
  struct Table {
    Set scope;
    double cells;
    i64 offset, source, factor;
    std::size_t strides;  // where those of its variables are, in order
  };
  struct Node {
    Set separator;
    Tables own;  // factors
    std::vector<int> children;
    int parent, message, from_parent;
    bool listens;
  };
  // Something that a bucket sends away: what is kept, the child's own message, and the child (-1: the bucket's marginal).
  struct Target {
    Set keep;
    int message, child;
  };

  void begin(const order::Order& order) {
    program_->words.clear(), program_->starts.clear(), program_->least.clear(), program_->reads.clear();
    program_->marginals.clear(), program_->roots.clear();
    program_->work = 0;
    tables_.clear(), strides_.clear();
    end_ = model_.first;
    variables_ = order;
    std::fill(position_.begin(), position_.end(), -1);
    sizes_.clear();
    for (const order::Vertex v : order) {
      position_[v] = int(sizes_.size());
      sizes_.push_back(model_.sizes[v]);
    }
    if (nodes_.size() < order.size()) nodes_.resize(order.size());
    along_.resize(order.size());
    for (std::size_t n = 0; n < order.size(); ++n) {
      Node& node = nodes_[n];
      node.separator = {};
      node.own.clear(), node.children.clear();
      node.parent = node.message = node.from_parent = -1;
      node.listens = false;
    }
  }

  int count() const { return int(sizes_.size()); }

  void place_factors() {
    std::vector<std::pair<int, i64>> axes;
    for (i64 f = 0; f < model_.factors(); ++f) {
      axes.clear();
      for (i64 i = model_.starts[f]; i < model_.starts[f + 1]; ++i)
        if (const int v = position_[model_.members[i]]; v >= 0) axes.emplace_back(v, model_.strides[i]);
      if (axes.empty()) continue;
      std::sort(axes.begin(), axes.end());
      nodes_[axes.front().first].own.push_back(int(tables_.size()));
      tables_.push_back({{}, 1, model_.offsets[f], -1, f, strides_.size()});
      for (const auto& [v, stride] : axes) {
        tables_.back().scope.add(v);
        tables_.back().cells *= double(sizes_[v]);
        strides_.push_back(stride);
      }
    }
  }

  void towards_roots() {
    Tables reads;
    for (int n = 0; n < count(); ++n) {
      Node& node = nodes_[n];
      reads = node.own;
      for (const int child : node.children) reads.push_back(nodes_[child].message);
      node.separator = scope_of(reads);
      node.separator.remove(n);
      node.message = eliminate(n, node.separator, reads);
      if (node.separator.empty()) {
        program_->roots.push_back(program_->steps() - 1);
      } else {
        node.parent = int(node.separator.first());
        nodes_[node.parent].children.push_back(n);
      }
    }
    program_->upward = program_->steps();
  }

  // The downward pass, as far as the requested marginals need it.
  void outward() {
    find_sites();
    for (const i64 variable : asked_)
      for (int n = site_[position_[model_.asked[variable]]]; n >= 0 && nodes_[n].parent >= 0 && !nodes_[n].listens; n = nodes_[n].parent) nodes_[n].listens = true;
    for (int n = count() - 1; n >= 0; --n) send(n);
    for (const i64 number : asked_) {
      const int v = position_[model_.asked[number]];
      if (site_[v] == v) continue;
      const Node& node = nodes_[site_[v]];
      Tables reads{node.message};
      if (node.from_parent >= 0) reads.push_back(node.from_parent);
      add_marginal(v, reads);
    }
  }

  // Each marginal is read off at the smallest separator with the variable, or in its own bucket if none has it.
  void find_sites() {
    site_.resize(sizes_.size());
    for (int v = 0; v < count(); ++v) site_[v] = v;
    least_cells_.assign(sizes_.size(), std::numeric_limits<double>::infinity());
    for (int n = 0; n < count(); ++n) {
      const double all = cells(nodes_[n].separator);
      nodes_[n].separator.each([&](i64 v) {
        if (all < least_cells_[v]) least_cells_[v] = all, site_[v] = n;
      });
    }
    asked_.clear();
    place_of_.assign(sizes_.size(), -1);
    for (i64 number = 0; number < i64(model_.asked.size()); ++number) {
      const int v = position_[model_.asked[number]];
      if (v < 0) {
        program_->marginals.push_back({model_.asked[number], -1, model_.places[number]});
      } else {
        asked_.push_back(number);
        place_of_[v] = model_.places[number];
      }
    }
  }

  void send(int n) {
    Node& node = nodes_[n];
    Tables common = node.own;
    if (node.from_parent >= 0) common.push_back(node.from_parent);
    std::vector<Target> targets;
    for (const int child : node.children) {
      if (nodes_[child].listens)
        targets.push_back({nodes_[child].separator, nodes_[child].message, child});
      else
        common.push_back(nodes_[child].message);
    }
    if (place_of_[n] >= 0 && site_[n] == n) {
      targets.push_back({{}, -1, -1});
      targets.back().keep.add(n);
    }
    if (!targets.empty()) distribute(n, common, targets.data(), targets.data() + targets.size());
  }

  // Sends each target the product of all messages but its own. Each half of the targets gets the other half as one product.
  void distribute(int n, const Tables& common, const Target* first, const Target* last) {
    if (last - first == 1) {
      if (first->child < 0) return add_marginal(n, common);
      const Tables left = contract(common, first->keep, true);
      if (!left.empty()) nodes_[first->child].from_parent = left.front();
      return;
    }
    const Target* middle = first + (last - first) / 2;
    distribute_half(n, common, first, middle, middle, last);
    distribute_half(n, common, middle, last, first, middle);
  }

  void distribute_half(int n, Tables known, const Target* first, const Target* last, const Target* other, const Target* other_last) {
    for (; other < other_last; ++other)
      if (other->message >= 0) known.push_back(other->message);
    if (last - first > 1) {
      Set keep;
      for (const Target* target = first; target < last; ++target) keep |= target->keep;
      known = contract(std::move(known), keep, false);
    }
    distribute(n, known, first, last);
  }

  void add_marginal(int v, const Tables& reads) {
    Set keep;
    keep.add(v);
    int found = contract(reads, keep, true).front();
    if (tables_[found].source < 0) {
      Tables factor{found};
      found = eliminate(kJoin, keep, factor);
    }
    program_->marginals.push_back({i64(variables_[v]), tables_[found].offset, place_of_[v]});
  }

  // Eliminates what is not kept, the cheapest bucket first; `whole`: leaves at most one table.
  Tables contract(Tables live, const Set& keep, bool whole) {
    Set gone = scope_of(live);
    gone -= keep;
    while (!gone.empty()) {
      const auto [v, scope] = cheapest(live, gone);
      gone.remove(v);
      Set axes = scope;
      axes.remove(v);
      const bool last = whole && gone.empty();
      const auto stays = [&, v = v](int t) { return !tables_[t].scope.has(v) && !(last && tables_[t].scope.within(axes)); };
      const auto split = std::stable_partition(live.begin(), live.end(), stays);
      Tables chosen(split, live.end());
      live.erase(split, live.end());
      live.push_back(eliminate(v, axes, chosen));
    }
    if (whole && live.size() > 1) live = {eliminate(kJoin, scope_of(live), live)};
    return live;
  }

  // The variable whose bucket has the fewest cells, and the bucket's scope.
  std::pair<i64, Set> cheapest(const Tables& live, const Set& gone) const {
    std::pair<i64, Set> best{-1, {}};
    double least = 0;
    gone.each([&](i64 v) {
      Set scope;
      for (const int t : live)
        if (tables_[t].scope.has(v)) scope |= tables_[t].scope;
      const double all = cells(scope);
      if (best.first < 0 || all < least || (all == least && sizes_[v] > sizes_[best.first])) best = {v, scope}, least = all;
    });
    return best;
  }

  Set scope_of(const Tables& reads) const {
    Set scope;
    for (const int t : reads) scope |= tables_[t].scope;
    return scope;
  }

  double cells(const Set& scope) const {
    double product = 1;
    scope.each([&](i64 v) { product *= double(sizes_[v]); });
    return product;
  }

  // Appends a step, and others before it where it would read too many tables; returns what it makes.
  int eliminate(i64 v, const Set& axes, Tables& reads) {
    if (reads.size() > plan::kMostTables) {
      const auto smaller = [&](int a, int b) { return tables_[a].cells < tables_[b].cells; };
      std::stable_sort(reads.begin(), reads.end(), smaller);
    }
    while (reads.size() > plan::kMostTables) {
      const Tables few(reads.begin(), reads.begin() + plan::kMostTables);
      reads.erase(reads.begin(), reads.begin() + plan::kMostTables);
      reads.push_back(append(kJoin, scope_of(few), few));
    }
    return append(v, axes, reads);
  }

  int append(i64 v, const Set& axes, const Tables& reads) {
    const double all = cells(axes);
    if (all >= kLarge) end_ = (end_ + kUnit - 1) / kUnit * kUnit;
    if (all + double(end_) > double(model_.last)) throw CaseTooLarge{};
    const i64 domain = v < 0 ? 1 : sizes_[v];
    arrange(axes, reads);
    const int made = int(tables_.size());
    tables_.push_back({axes, all, end_, program_->steps(), -1, strides_.size()});
    record_.start(v < 0 ? v : i64(variables_[v]), domain, end_, kWeightOne);
    i64 stride = i64(all);
    for (const i64 axis : sequence_) {
      stride /= sizes_[axis];
      along_[axis] = stride;
      record_.add_axis(sizes_[axis], stride, i64(variables_[axis]));
    }
    axes.each([&](i64 axis) { strides_.push_back(along_[axis]); });
    record_.split(record_.axes(), first_lo());
    double least = 0;
    for (const int t : reads) {
      write_table(tables_[t], v, axes);
      if (tables_[t].source < 0) least += model_.least[tables_[t].factor];
    }
    program_->starts.push_back(i64(program_->words.size()));
    program_->least.push_back(least);
    const std::vector<i64>& places = record_.append_to(program_->words);
    for (std::size_t i = 0; i < reads.size(); ++i)
      if (tables_[reads[i]].source < 0) program_->reads.push_back({places[i] + kOffset, tables_[reads[i]].factor});
    program_->work += all * double(domain) * (1 + 0.5 * double(record_.streamed()));
    end_ += i64(all);
    return made;
  }

  // The output's axes, slow to fast: as in the largest table, so that it is read in its own order.
  void arrange(const Set& axes, const Tables& reads) {
    sequence_.clear();
    axes.each([&](i64 axis) { sequence_.push_back(axis), along_[axis] = std::numeric_limits<i64>::max(); });
    const Table* largest = nullptr;
    double most = 0;
    for (const int t : reads)
      if (tables_[t].cells > most) most = tables_[t].cells, largest = &tables_[t];
    if (!largest) return;
    const i64* own = strides_.data() + largest->strides;
    largest->scope.each([&](i64 u) { along_[u] = *own++; });
    std::stable_sort(sequence_.begin(), sequence_.end(), [&](i64 a, i64 b) { return along_[a] > along_[b]; });
  }

  // The first of the last axes that may be fast ones.
  i64 first_lo() const {
    i64 first = i64(sequence_.size());
    for (i64 cells = 1; first > 0 && cells * sizes_[sequence_[first - 1]] <= kLoCells; --first) cells *= sizes_[sequence_[first - 1]];
    return first;
  }

  void write_table(const Table& table, i64 v, const Set& axes) {
    const i64* own = strides_.data() + table.strides;
    i64 domain_stride = 0;
    axes.each([&](i64 axis) { along_[axis] = 0; });
    table.scope.each([&](i64 u) { (u == v ? domain_stride : along_[u]) = *own++; });
    i64* strides = record_.add_table(table.offset, domain_stride, table.source);
    for (const i64 axis : sequence_) *strides++ = along_[axis];
  }

  const CaseModel& model_;
  CaseProgram* program_ = nullptr;
  order::Order variables_;
  std::vector<int> position_;
  std::vector<i64> sizes_;
  std::vector<Node> nodes_;
  std::vector<Table> tables_;
  std::vector<i64> strides_, along_, sequence_;
  std::vector<i64> asked_, place_of_;  // numbers of what is asked for and not observed; where each variable's marginal goes
  std::vector<int> site_;
  std::vector<double> least_cells_;
  StepRecord record_;
  i64 end_ = 0;
};

}  // namespace

std::unique_ptr<CasePasses> make_case_passes(const CaseModel& model) {
  const i64 variables = i64(model.sizes.size());
  if (variables <= 64) return std::make_unique<Passes<1>>(model);
  if (variables <= 256) return std::make_unique<Passes<4>>(model);
  if (variables <= 1024) return std::make_unique<Passes<16>>(model);
  if (variables <= 2048) return std::make_unique<Passes<32>>(model);
  return nullptr;
}

}  // namespace elimina
