#include "elimination.hpp"

#include <bit>
#include <numeric>
#include <stdexcept>

#include "exec/sparse/decode.hpp"
#include "network/extensions.hpp"
#include "stop.hpp"

namespace elimina::filter {

namespace {

constexpr std::size_t kRowBytes = sizeof(Key) + sizeof(Value);
constexpr std::size_t kMakingBytes = 64;  // bytes of a row under construction, its growth and its sources included
constexpr std::size_t kLeastStored = 1 << 10;
constexpr std::size_t kCached = 1 << 10;  // number of rows that stay in the cache
constexpr std::uint64_t kAsk = 1 << 18;   // number of candidates, or of rows to cut, between calls of goes_on

const sparse::Ring kRing{SemiringKind::min_sum, ValueKind::int32, 0, never};

// A sorted table of the sparse executor, whose keys have one word.
struct Rows {
  Scope order;  // the least significant variable first
  sparse::OwnedTable made;

  u64* keys() const { return made.keys.as<u64>(); }
  Value* costs() const { return made.values.as<Value>(); }
  std::size_t count() const { return static_cast<std::size_t>(made.rows); }
  sparse::Table table() const { return {keys(), costs(), made.rows}; }
  Scope scope() const {
    Scope scope = order;
    std::sort(scope.begin(), scope.end());
    return scope;
  }
};

// Returns rows for all values of a variable or, without a variable, one empty row; all at cost 0.
Rows free_rows(Scope order, int rows) {
  Rows out{std::move(order),
           {sparse::Buffer(rows * i64{sizeof(Key)}), sparse::Buffer(rows * i64{sizeof(Value)}), rows}};
  std::iota(out.keys(), out.keys() + rows, u64{0});
  std::fill_n(out.costs(), rows, 0);
  return out;
}

// Returns the cell of a dense table at a key: see `TermWord`.
std::size_t cell_at(Key key, const i64* terms, i64 count) {
  std::size_t cell = 0;
  for (; count > 0; --count, terms += sparse::kTermWords)
    cell +=
        (key >> terms[sparse::kTermShift] & Key(terms[sparse::kTermMask])) * std::size_t(terms[sparse::kTermStride]);
  return cell;
}

class Elimination {
 public:
  Elimination(const Tree& tree, const Bounds& bounds, const Filter& filter)
      : tree_(tree), fields_(tree.fields), bounds_(bounds), filter_(filter), message_(tree.nodes.size()) {}

  Outcome run() {
    const int root = tree_.root();
    for (int b = 0; b < root; ++b) {
      try {
        bucket(b);
      } catch (const std::overflow_error&) {
        out_.aborted = true;
      } catch (const Stopped&) {
        out_.aborted = true;
      }
      if (out_.aborted) {
        out_.unseen = std::min(out_.unseen, bounds_.total);
        return out_;
      }
      if (message_[b].count() == 0) return out_;
    }
    Value total = 0;
    for (int c : tree_.nodes[root].children) total = clamp(total + message_[c].costs()[0]);
    if (total <= tree_.budget) find_assignments(total);
    return out_;
  }

  // The functions that `Extensions` calls; bucket `rank` eliminates the variable `rank`.
  std::size_t eliminated_count() const { return static_cast<std::size_t>(tree_.root()); }
  Var eliminated(std::size_t rank) const { return static_cast<Var>(rank); }
  void list_costs(std::size_t rank, std::vector<int>& value, std::vector<std::pair<int, Cost>>& costs) const {
    const Var b = eliminated(rank);
    for (int x = 0; x < fields_.size(b); ++x) {
      value[rank] = x;
      Cost sum = 0;
      for (const sparse::Readable& table : decoded_[rank]) {
        std::array<u64, sparse::kMostWords> address{};
        for (const auto& [v, word, stride] : table.fields)
          address[std::size_t(word)] += u64(stride) * u64(value[std::size_t(v)]);
        const i64 row = table.find(address);
        sum += row < 0 ? never : static_cast<const Value*>(table.values)[row];
        if (sum >= never) break;
      }
      if (sum < never) costs.emplace_back(x, sum);
    }
  }

 private:
  void bucket(int b) {
    const Node& node = tree_.nodes[b];
    cluster_ = &node.cluster;
    factors_ = node.factors;
    waiting_ = node.children;
    Rows rows = free_rows({}, 1);
    while (!waiting_.empty()) {
      const int child = next_child(rows.scope());
      std::erase(waiting_, child);
      rows = joined(rows, message_[child], b);
    }
    while (rows.order.size() < node.cluster.size()) {
      const Var v = next_variable(rows.scope(), b);
      rows = joined(rows, free_rows({v}, fields_.size(v)), b);
    }
    Rows message{without(rows.order, b), {}};
    Scope order = message.order;
    order.insert(order.begin(), b);
    sparse::OwnedTable buffer;
    message.made = functions_.project(kRing, arranged(rows, order, buffer), (u64{1} << fields_.bits(b)) - 1, 1);
    for (std::size_t i = 0; i < message.count(); ++i) message.keys()[i] >>= fields_.bits(b);
    out_.largest = std::max(out_.largest, message.count());
    out_.kept += message.count();
    held_bytes_ += message.count() * kRowBytes;
    message_[b] = std::move(message);
  }

  // Returns the waiting child whose message adds the fewest bits to the scope; of several, the one with the largest
  // message.
  int next_child(const Scope& scope) const {
    int best = -1;
    std::pair<int, std::size_t> least{};
    for (int c : waiting_) {
      const std::pair<int, std::size_t> added{scope.empty() ? 0 : fields_.bits(join(scope, tree_.nodes[c].separator)),
                                              SIZE_MAX - message_[c].count()};
      if (best < 0 || added < least) {
        best = c;
        least = added;
      }
    }
    return best;
  }

  // Returns the variable to add to a scope next. The extended scope has most variables in common with the factors and,
  // counted less, with the bounds. The bucket's own variable comes last.
  Var next_variable(const Scope& scope, int b) const {
    Var best = b;
    int best_score = -1;
    for (Var v : *cluster_) {
      if (v == b || holds(scope, v)) continue;
      const Scope with = join(scope, {v});
      int score = 0;
      for (const TablePtr& f : factors_) score += static_cast<int>(8 * meet(f->scope, with).size());
      for (const TablePtr& d : bounds_.down[b]) score += static_cast<int>(meet(d->scope, with).size());
      if (score > best_score) {
        best_score = score;
        best = v;
      }
    }
    return best;
  }

  // Joins two tables. Shared variables are the most significant ones, then variables of the larger table only; in each
  // part the order is that of the larger table.
  Rows joined(const Rows& first, const Rows& other, int b) {
    const bool swaps = other.count() > first.count();
    const Rows &left = swaps ? other : first, &right = swaps ? first : other;
    const auto holds_in = [](const Scope& order) {
      return [&](Var v) { return std::find(order.begin(), order.end(), v) != order.end(); };
    };
    Scope order = right.order;
    std::erase_if(order, holds_in(left.order));
    std::copy_if(left.order.begin(), left.order.end(), std::back_inserter(order), std::not_fn(holds_in(right.order)));
    const u64 group = ~((u64{1} << fields_.bits(order)) - 1);
    std::copy_if(left.order.begin(), left.order.end(), std::back_inserter(order), holds_in(right.order));
    const std::vector<i64> stage = prepare(order, left.count(), b);
    // Messages stay in memory until the assignment is found, so the new table may take only the rest of `most_stored`.
    const std::size_t max_rows =
        std::max(kLeastStored, filter_.most_stored - std::min(filter_.most_stored, held_bytes_ / kMakingBytes));
    const auto goes_on = [this](i64 candidates) { return counts(candidates); };
    sparse::OwnedTable of_left, of_right;
    Rows out{order,
             functions_.join(kRing, arranged(left, order, of_left), arranged(right, order, of_right),
                             {&group, 0, false, static_cast<i64>(std::min<std::size_t>(max_rows, INT64_MAX)), goes_on},
                             {stage.data(), 0, tree_.budget}, 1)};
    out_.bytes = std::max(out_.bytes, held_bytes_ + out.count() * kRowBytes);
    out_.aborted = !filter_.goes_on();
    if (out.count() > filter_.max_rows) cut(out, stage.data());
    return out;
  }

  bool counts(i64 candidates) {
    out_.made += static_cast<std::uint64_t>(candidates);
    if (out_.made - asked_ <= kAsk) return out_.made <= filter_.most_made;
    asked_ = out_.made;
    return out_.made <= filter_.most_made && filter_.goes_on();
  }

  // Returns the table with its variables in another order, and sorted by this order; the order may include new
  // variables. `buffer`: owner of the new table's memory.
  sparse::Table arranged(const Rows& rows, const Scope& order, sparse::OwnedTable& buffer) const {
    if (order == rows.order) return rows.table();
    std::vector<i64> segments;
    for (const auto& [from, mask, to] : moves(rows.order, order))
      segments.insert(segments.end(), {0, from, mask, 0, to});
    buffer.keys = functions_.move(rows.keys(), rows.made.rows, segments.data(),
                                  std::ssize(segments) / sparse::kSegmentWords, 1, 1);
    const sparse::Table moved{buffer.keys.as<u64>(), rows.costs(), rows.made.rows};
    if (functions_.sorted(moved.keys, moved.rows, 1)) return moved;
    buffer = functions_.sort(moved, sizeof(Value), 1);
    return {buffer.keys.as<u64>(), buffer.values.as<Value>(), buffer.rows};
  }

  // Bits that are adjacent in the keys of two orders. `from`: position of the lowest of them in keys of the first
  // order; `mask`: a mask of as many bits; `to`: position of the lowest in keys of the other order.
  struct Move {
    i64 from, mask, to;
  };
  std::vector<Move> moves(const Scope& order, const Scope& onto) const {
    std::vector<Move> moves;
    i64 from = 0, next_from = -1, next_to = -1;
    for (Var v : order) {
      const int bits = fields_.bits(v);
      if (std::find(onto.begin(), onto.end(), v) != onto.end()) {
        const i64 mask = (i64{1} << bits) - 1, to = fields_.shift(v, onto);
        if (from == next_from && to == next_to) moves.back().mask |= mask << (from - moves.back().from);
        else moves.push_back({from, mask, to});
        next_from = from + bits;
        next_to = to + bits;
      }
      from += bits;
    }
    return moves;
  }

  // Returns the words of a stage whose rows have the variables `order` (some or all of the cluster's variables). The
  // stage's tables are the factors over these variables, and bounds on the rest of the problem.
  std::vector<i64> prepare(const Scope& order, std::size_t rows, int b) {
    Scope scope = order;
    std::sort(scope.begin(), scope.end());
    held_.clear();
    Tables complete, rest = bounds_.down[b];
    std::erase_if(factors_, [&](const TablePtr& f) {
      const bool is_covered = within(f->scope, scope);
      if (is_covered) complete.push_back(f);
      return is_covered;
    });
    const int bits = std::min<int>(filter_.bits, std::bit_width(rows) + 1);
    std::vector<i64> words(2);
    for (TablePtr& t : pack(fields_, std::move(complete), bits, tree_.budget))
      ++words[0], append(words, std::move(t), order);
    if (scope != *cluster_) {
      rest.insert(rest.end(), factors_.begin(), factors_.end());
      for (int c : waiting_) rest.push_back(shadow(c, scope));
      for (Var v : *cluster_)
        if (!holds(scope, v)) rest = eliminate(fields_, shrink(std::move(rest), bits), v, bits, tree_.budget);
    }
    for (TablePtr& t : pack(fields_, std::move(rest), bits, tree_.budget))
      if (std::any_of(t->value.begin(), t->value.end(), [](Value x) { return x > 0; }))
        ++words[1], append(words, std::move(t), order);
    return words;
  }

  // Appends a table's words of a stage: see `Stage` in elimina/rows.hpp.
  void append(std::vector<i64>& words, TablePtr table, const Scope& order) {
    const std::vector<Move> terms = moves(order, table->scope);
    words.insert(words.end(), {reinterpret_cast<i64>(table->value.data()), std::ssize(terms)});
    for (const auto& [from, mask, to] : terms) words.insert(words.end(), {0, from, mask, i64{1} << to});
    held_.push_back(std::move(table));
  }

  // Replaces tables of more than 2^max(bits, 10) cells, which cost too much for a few rows, by lower bounds over fewer
  // variables.
  Tables shrink(Tables tables, int bits) const {
    for (TablePtr& t : tables) {
      Scope scope = t->scope;
      while (fields_.bits(scope) > std::max(bits, 10)) scope.erase(scope.begin());
      if (scope.size() < t->scope.size()) t = std::make_shared<Table>(project(fields_, *t, scope));
    }
    return tables;
  }

  // Returns a table of the least costs of a child's message, over variables that its scope shares with `scope`.
  TablePtr shadow(int child, const Scope& scope) {
    const Rows& rows = message_[child];
    Scope onto = meet(tree_.nodes[child].separator, scope);
    while (fields_.bits(onto) > filter_.bits) onto.erase(onto.begin());
    Table out{onto, std::vector<Value>(std::size_t{1} << fields_.bits(onto), never)};
    std::vector<i64> terms;
    for (const auto& [from, mask, to] : moves(rows.order, onto))
      terms.insert(terms.end(), {0, from, mask, i64{1} << to});
    for (std::size_t i = 0; i < rows.count(); ++i) {
      Value& low = out.value[cell_at(rows.keys()[i], terms.data(), std::ssize(terms) / sparse::kTermWords)];
      low = std::min(low, rows.costs()[i]);
    }
    return std::make_shared<Table>(std::move(out));
  }

  // Gives up exactness: keeps only the rows with the least sums of their cost and the bounds on the rest of the
  // problem.
  void cut(Rows& rows, const i64* words) {
    std::vector<Value> total(rows.costs(), rows.costs() + rows.count());
    for (std::size_t begin = 0, end; begin < rows.count(); begin = end) {
      end = std::min(begin + kCached, rows.count());
      if (begin % kAsk == 0 && !filter_.goes_on()) throw Stopped();
      const i64* table_words = words + 2;
      for (i64 n = 0; n < words[0] + words[1]; ++n, table_words += 2 + table_words[1] * sparse::kTermWords)
        for (std::size_t i = begin; n >= words[0] && i < end; ++i)
          total[i] = clamp(total[i] + reinterpret_cast<const Value*>(
                                          table_words[0])[cell_at(rows.keys()[i], table_words + 2, table_words[1])]);
    }
    std::vector<Value> ranked = total;
    const auto last = ranked.begin() + static_cast<std::ptrdiff_t>(filter_.max_rows);
    std::nth_element(ranked.begin(), last, ranked.end());
    const Value limit = *last;
    std::size_t ties = filter_.max_rows - static_cast<std::size_t>(
                                              std::count_if(ranked.begin(), last, [&](Value x) { return x < limit; }));
    i64 to = 0;
    for (std::size_t i = 0; i < rows.count(); ++i) {
      if (total[i] > limit || (total[i] == limit && ties == 0)) continue;
      ties -= total[i] == limit;
      rows.keys()[to] = rows.keys()[i];
      rows.costs()[to++] = rows.costs()[i];
    }
    rows.made.rows = to;
    out_.unseen = std::min(out_.unseen, limit);
  }

  // Decodes assignments. They may cost less than the messages say, because a row that was cut may be better than a kept
  // one.
  void find_assignments(Value total) {
    std::vector<int> value(tree_.root());
    decoded_.resize(value.size());
    for (int b = tree_.root() - 1; b >= 0; --b) {
      std::vector<sparse::Readable>& tables = decoded_[b];
      for (const TablePtr& f : tree_.nodes[b].factors)
        tables.push_back({fields_of(f->scope), nullptr, 1, 0, f->value.data()});
      for (int c : tree_.nodes[b].children) {
        const Rows& rows = message_[c];
        tables.push_back({fields_of(rows.order), rows.keys(), 1, rows.made.rows, rows.costs()});
      }
      if (filter_.count == 1)
        value[b] = static_cast<int>(sparse::best_value(kRing, b, fields_.size(b), tables, value.data()));
    }
    if (filter_.count == 1) {
      out_.values.push_back(std::move(value));
      return;
    }
    network::Extensions<Elimination> extensions(filter_.count);
    extensions.start(*this, total, value);
    while (filter_.goes_on() && extensions.next(*this, Cost{tree_.budget} + 1, value)) out_.values.push_back(value);
  }

  std::vector<sparse::Readable::Field> fields_of(const Scope& order) const {
    std::vector<sparse::Readable::Field> fields;
    for (Var v : order) fields.push_back({v, 0, i64{1} << fields_.shift(v, order)});
    return fields;
  }

  const Tree& tree_;
  const Fields& fields_;
  const Bounds& bounds_;
  Filter filter_;
  const sparse::RowsFunctions& functions_ = *sparse::rows_functions(1);
  std::vector<Rows> message_;
  std::vector<std::vector<sparse::Readable>> decoded_;  // factors and messages of each bucket
  const Scope* cluster_ = nullptr;
  Tables factors_, held_;
  std::vector<int> waiting_;
  std::size_t held_bytes_ = 0;  // bytes of messages
  std::uint64_t asked_ = 0;     // number of candidates at the last call of goes_on
  Outcome out_;
};

}  // namespace

Outcome filtered_elimination(const Tree& tree, const Bounds& bounds, const Filter& filter) {
  return Elimination(tree, bounds, filter).run();
}

}  // namespace elimina::filter
