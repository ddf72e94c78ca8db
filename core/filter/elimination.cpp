#include "elimination.hpp"

#include <bit>

#include "exec/sparse/decode.hpp"

namespace elimina::filter::ELIMINA_ISA {

namespace {

constexpr std::size_t kRowBytes = sizeof(Key) + 2 * sizeof(Value);
constexpr std::size_t kMakingBytes = 64;  // of a row in the making: as it grows, and beside the rows that it is made of
constexpr std::size_t kLeastStored = 1 << 10;

class Elimination {
 public:
  Elimination(const Tree& tree, const Bounds& bounds, const Filter& filter)
      : tree_(tree), fields_(tree.fields), bounds_(bounds), filter_(filter), message_(tree.nodes.size()) {}

  Outcome run() {
    const int root = tree_.root();
    for (int b = 0; b < root; ++b) {
      bucket(b);
      if (out_.aborted) {
        out_.unseen = std::min(out_.unseen, bounds_.total);
        return out_;
      }
      if (message_[b].count() == 0) return out_;
    }
    Value total = 0;
    for (int c : tree_.nodes[root].children) total = clamp(total + message_[c].cost[0]);
    if (total > tree_.budget) return out_;
    find_assignment();
    return out_;
  }

 private:
  void bucket(int b) {
    const Node& node = tree_.nodes[b];
    cluster_ = &node.cluster;
    factors_ = node.factors;
    waiting_ = node.children;
    Rows rows{{}, {0}, {0}, {0}};
    while (!waiting_.empty()) {
      const int child = next_child(rows.scope);
      std::erase(waiting_, child);
      rows = take(std::move(rows), child, b);
    }
    while (rows.scope.size() < node.cluster.size()) {
      const Var v = next_variable(rows.scope, b);
      Stage stage = prepare(join(rows.scope, {v}), rows.count(), b);
      rows = extend_rows(rows, v, fields_.size(v), fields_.shift(v, *cluster_), stage);
      finish(stage, rows);
    }
    Rows message = least_rows(rows, fields_.bits(b), fields_.bits(node.cluster));
    message.scope = node.separator;
    out_.largest = std::max(out_.largest, message.count());
    out_.kept += message.count();
    held_bytes_ += message.key.capacity() * kRowBytes;
    message_[b] = std::move(message);
  }

  // The one that adds the fewest bits to the scope, the largest of those.
  int next_child(const Scope& scope) const {
    int best = -1;
    std::pair<int, std::size_t> least{};
    for (int c : waiting_) {
      const std::pair<int, std::size_t> added{scope.empty() ? 0 : fields_.bits(join(scope, message_[c].scope)),
                                              SIZE_MAX - message_[c].count()};
      if (best < 0 || added < least) {
        best = c;
        least = added;
      }
    }
    return best;
  }

  // The bucket's own variable comes last, others by how many factors and bounds they complete.
  Var next_variable(const Scope& scope, int b) const {
    Var best = b;
    int most = -1;
    for (Var v : *cluster_) {
      if (v == b || holds(scope, v)) continue;
      const Scope with = join(scope, {v});
      int score = 0;
      for (const TablePtr& f : factors_) score += static_cast<int>(8 * meet(f->scope, with).size());
      for (const TablePtr& d : bounds_.down[b]) score += static_cast<int>(meet(d->scope, with).size());
      if (score > most) {
        most = score;
        best = v;
      }
    }
    return best;
  }

  Rows take(Rows rows, int child, int b) {
    Rows right = message_[child];
    const Key place = fields_.mask(right.scope, *cluster_);
    for (Key& k : right.key) k = deposit(k, place);
    const Scope both = join(rows.scope, right.scope);
    Stage stage = prepare(both, std::max(rows.count(), right.count()), b);
    if (right.count() > rows.count()) std::swap(rows, right);
    const Key shared = fields_.mask(meet(rows.scope, right.scope), *cluster_);
    Rows out = join_rows(rows, right, shared, stage);
    finish(stage, out);
    return out;
  }

  // Bounds on the tuples over a part of the cluster: factors that are complete now, and what is left.
  Stage prepare(const Scope& scope, std::size_t rows, int b) {
    // Messages stay until there is an assignment.
    const std::size_t held = held_bytes_ / kMakingBytes;
    Stage stage{{}, {}, tree_.budget, filter_.most_made - std::min(filter_.most_made, out_.made),
                std::max(kLeastStored, filter_.most_stored - std::min(filter_.most_stored, held)), filter_.goes_on};
    held_.clear();
    Tables complete, rest = bounds_.down[b];
    std::erase_if(factors_, [&](const TablePtr& f) {
      const bool done = within(f->scope, scope);
      if (done) complete.push_back(f);
      return done;
    });
    const int bits = std::min<int>(filter_.bits, std::bit_width(rows) + 1);
    for (TablePtr& t : pack(fields_, std::move(complete), bits, tree_.budget)) stage.exact.push_back(term(t));
    if (scope != *cluster_) {
      rest.insert(rest.end(), factors_.begin(), factors_.end());
      for (int c : waiting_) rest.push_back(shadow(c, scope));
      for (Var v : *cluster_)
        if (!holds(scope, v)) rest = eliminate(fields_, shrink(std::move(rest), bits), v, bits, tree_.budget);
    }
    for (TablePtr& t : pack(fields_, std::move(rest), bits, tree_.budget))
      if (std::any_of(t->value.begin(), t->value.end(), [](Value x) { return x > 0; })) stage.bound.push_back(term(t));
    return stage;
  }

  // Tables too large for a few rows are replaced by what they cost at least.
  Tables shrink(Tables tables, int bits) const {
    for (TablePtr& t : tables) {
      Scope scope = t->scope;
      while (fields_.bits(scope) > std::max(bits, 10)) scope.erase(scope.begin());
      if (scope.size() < t->scope.size()) t = std::make_shared<Table>(project(fields_, *t, scope));
    }
    return tables;
  }

  // A message's least costs over a part of its scope.
  TablePtr shadow(int child, const Scope& scope) const {
    const Rows& rows = message_[child];
    Scope onto = meet(rows.scope, scope);
    while (fields_.bits(onto) > filter_.bits) onto.erase(onto.begin());
    Table out{onto, std::vector<Value>(std::size_t{1} << fields_.bits(onto), never)};
    const Key mask = fields_.mask(onto, rows.scope);
    for (std::size_t i = 0; i < rows.count(); ++i) {
      Value& low = out.value[extract(rows.key[i], mask)];
      low = std::min(low, rows.cost[i]);
    }
    return std::make_shared<Table>(std::move(out));
  }

  Term term(TablePtr table) {
    const Term t{fields_.mask(table->scope, *cluster_), table->value.data()};
    held_.push_back(std::move(table));
    return t;
  }

  void finish(Stage& stage, Rows& rows) {
    out_.made += stage.made;
    out_.aborted = out_.aborted || stage.is_over(rows) || !filter_.goes_on();
    out_.bytes = std::max(out_.bytes, held_bytes_ + rows.key.capacity() * kRowBytes);
    out_.unseen = std::min(out_.unseen, cut_rows(rows, filter_.most));
  }

  // A row that was cut may be better than the one that was kept, so the cost of the assignment may be less than the message's.
  void find_assignment() {
    std::vector<int> value(tree_.root());
    for (int b = tree_.root() - 1; b >= 0; --b) {
      std::vector<sparse::Readable> tables;
      for (const TablePtr& f : tree_.nodes[b].factors) tables.push_back({places(f->scope), nullptr, 1, 0, f->value.data()});
      for (int c : tree_.nodes[b].children) {
        const Rows& rows = message_[c];
        tables.push_back({places(rows.scope), rows.key.data(), 1, static_cast<i64>(rows.count()), rows.cost.data()});
      }
      value[b] = static_cast<int>(sparse::best_value<Value>(b, fields_.size(b), tables, value.data(), true));
    }
    out_.value = std::move(value);
  }

  std::vector<sparse::Readable::Field> places(const Scope& scope) const {
    std::vector<sparse::Readable::Field> fields;
    for (Var v : scope) fields.push_back({v, 0, i64{1} << fields_.shift(v, scope)});
    return fields;
  }

  const Tree& tree_;
  const Fields& fields_;
  const Bounds& bounds_;
  Filter filter_;
  std::vector<Rows> message_;
  const Scope* cluster_ = nullptr;
  Tables factors_, held_;
  std::vector<int> waiting_;
  std::size_t held_bytes_ = 0;  // of messages
  Outcome out_;
};

}  // namespace

Outcome filtered_elimination(const Tree& tree, const Bounds& bounds, const Filter& filter) {
  return Elimination(tree, bounds, filter).run();
}

}  // namespace elimina::filter::ELIMINA_ISA
