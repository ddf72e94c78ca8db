#include "tables.hpp"

#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "plan/mini_buckets.hpp"

namespace elimina::filter {

Fields::Fields(const std::vector<int>& size) : size_(size) {
  for (int s : size) bits_.push_back(std::bit_width(static_cast<unsigned>(s - 1)));
}

int Fields::bits(const Scope& scope) const {
  int total = 0;
  for (Var v : scope) total += bits_[v];
  return total;
}

int Fields::shift(Var v, const Scope& whole) const {
  int offset = 0;
  for (Var u : whole) {
    if (u == v) break;
    offset += bits_[u];
  }
  return offset;
}

Scope join(const Scope& a, const Scope& b) {
  Scope out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

Scope meet(const Scope& a, const Scope& b) {
  Scope out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

Scope without(Scope scope, Var v) {
  scope.erase(std::remove(scope.begin(), scope.end(), v), scope.end());
  return scope;
}

bool holds(const Scope& scope, Var v) { return std::binary_search(scope.begin(), scope.end(), v); }

bool within(const Scope& subset, const Scope& whole) {
  return std::includes(whole.begin(), whole.end(), subset.begin(), subset.end());
}

namespace {

// Calls visit(cell of `whole`, cell of `subscope`) for each cell of `whole`, which contains the subscope's variables.
template <class Visit>
void each_cell(const Fields& fields, const Scope& subscope, const Scope& whole, Visit visit) {
  constexpr int kRun = 6;  // cells come in runs of 2^kRun, which share one list of offsets
  // Offset in the subscope's table for each bit of a cell's number.
  std::array<std::size_t, 64> weight{};
  int bits = 0, own_bits = 0;
  auto next = subscope.begin();
  for (Var v : whole) {
    const bool is_in = next != subscope.end() && *next == v;
    for (int bit = 0; bit < fields.bits(v); ++bit) weight[bits++] = is_in ? std::size_t{1} << own_bits++ : 0;
    next += is_in;
  }
  std::array<std::uint32_t, 1 << kRun> within{};
  const int run = std::min(bits, kRun);
  for (int bit = 0; bit < run; ++bit)
    for (std::size_t i = 0; i < std::size_t{1} << bit; ++i)
      within[(std::size_t{1} << bit) + i] = within[i] + static_cast<std::uint32_t>(weight[bit]);
  for (std::size_t high = 0; high < std::size_t{1} << (bits - run); ++high) {
    std::size_t first = 0;
    for (std::size_t remaining = high; remaining; remaining &= remaining - 1)
      first += weight[run + std::countr_zero(remaining)];
    for (std::size_t i = 0; i < std::size_t{1} << run; ++i) visit((high << run) + i, first + within[i]);
  }
}

}  // namespace

Table sum(const Fields& fields, const Tables& tables, Value budget) {
  Scope scope;
  for (const TablePtr& table : tables) scope = join(scope, table->scope);
  const std::size_t cells = std::size_t{1} << fields.bits(scope);
  Table out{std::move(scope), std::vector<Value>(cells, 0)};
  for (const TablePtr& table : tables)
    each_cell(fields, table->scope, out.scope,
              [total = out.value.data(), value = table->value.data()](std::size_t i, std::size_t cell) {
                total[i] = clamp(total[i] + value[cell]);
              });
  for (Value& x : out.value)
    if (x > budget) x = never;
  return out;
}

Table project(const Fields& fields, const Table& table, const Scope& onto) {
  if (onto == table.scope) return table;
  Table out{onto, std::vector<Value>(std::size_t{1} << fields.bits(onto), never)};
  each_cell(fields, onto, table.scope,
            [least = out.value.data(), value = table.value.data()](std::size_t i, std::size_t cell) {
              least[cell] = std::min(least[cell], value[i]);
            });
  return out;
}

namespace {

std::vector<Tables> divided(const Fields& fields, const Tables& tables, int bits) {
  std::vector<std::span<const int>> scopes;
  for (const TablePtr& table : tables) scopes.emplace_back(table->scope);
  std::vector<Tables> result;
  for (const auto& members : plan::MiniBuckets().divide(scopes, bits, fields.widths())) {
    result.emplace_back();
    for (const int i : members) result.back().push_back(tables[i]);
  }
  return result;
}

void level(const Fields& fields, std::vector<Table>& tables) {
  Scope shared = tables[0].scope;
  for (const Table& t : tables) shared = meet(shared, t.scope);
  std::vector<Table> low;
  for (const Table& t : tables) low.push_back(project(fields, t, shared));
  const Value count = static_cast<Value>(tables.size());
  std::vector<Value> total(low[0].value.size(), 0);
  for (const Table& l : low)
    for (std::size_t i = 0; i < total.size(); ++i) total[i] = clamp(total[i] + l.value[i]);
  for (std::size_t k = 0; k < tables.size(); ++k) {
    each_cell(fields, shared, tables[k].scope, [&](std::size_t i, std::size_t s) {
      Value& x = tables[k].value[i];
      if (x >= never || total[s] >= never) {
        x = never;
        return;
      }
      // The first tables get the remainder of the division, one unit each.
      const Value share = total[s] / count + (static_cast<Value>(k) < total[s] % count);
      x += share - low[k].value[s];
    });
  }
}

}  // namespace

Tables eliminate(const Fields& fields, Tables tables, Var v, int bits, Value budget) {
  Tables out, bucket;
  for (TablePtr& table : tables) (holds(table->scope, v) ? bucket : out).push_back(std::move(table));
  std::vector<Table> sums;
  for (const Tables& mini_bucket : divided(fields, bucket, bits)) sums.push_back(sum(fields, mini_bucket, budget));
  if (sums.size() > 1) level(fields, sums);
  for (Table& t : sums) out.push_back(std::make_shared<Table>(project(fields, t, without(t.scope, v))));
  return out;
}

Tables pack(const Fields& fields, const Tables& tables, int bits, Value budget) {
  Tables out;
  for (const Tables& mini_bucket : divided(fields, tables, bits))
    out.push_back(mini_bucket.size() == 1 ? mini_bucket[0] : std::make_shared<Table>(sum(fields, mini_bucket, budget)));
  return out;
}

}  // namespace elimina::filter
