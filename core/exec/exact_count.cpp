#include "exec/exact_count.hpp"

#include <algorithm>
#include <utility>

#include "elimina/program.hpp"
#include "stop.hpp"

namespace elimina {
namespace {

__extension__ using Wide = unsigned __int128;

void add(LongInteger& to, const LongInteger& other) {
  if (to.size() < other.size()) to.resize(other.size());
  u64 carry = 0;
  std::size_t i = 0;
  for (; i < other.size(); ++i) {
    const Wide sum = Wide(to[i]) + other[i] + carry;
    to[i] = u64(sum);
    carry = u64(sum >> 64);
  }
  for (; carry && i < to.size(); ++i) carry = ++to[i] == 0;
  if (carry) to.push_back(carry);
}

LongInteger product(const LongInteger& one, const LongInteger& other) {
  LongInteger result(one.size() + other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    u64 carry = 0;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const Wide sum = Wide(one[i]) * other[j] + result[i + j] + carry;
      result[i + j] = u64(sum);
      carry = u64(sum >> 64);
    }
    result[i + other.size()] = carry;
  }
  while (!result.empty() && !result.back()) result.pop_back();
  return result;
}

class LongRun {
 public:
  LongRun(std::span<const i64> words, std::span<const i64> starts, const u64* factors)
      : words_(words), starts_(starts), factors_(factors), messages_(starts.size()), last_(starts.size(), -1) {
    for (i64 number = 0; number < i64(starts.size()); ++number) {
      const StepView step = view(number);
      for (i64 t = 0; t < step[kTables]; ++t)
        if (const i64 source = step.table(t).source(); source >= 0) last_[source] = number;
    }
  }

  LongInteger run(std::span<const i64> roots) {
    for (i64 number = 0; number < i64(starts_.size()); ++number) {
      check_stop();
      eliminate(number);
      const StepView step = view(number);
      for (i64 t = 0; t < step[kTables]; ++t)
        if (const i64 source = step.table(t).source(); source >= 0 && last_[source] == number) messages_[source] = {};
    }
    LongInteger count{1};
    for (const i64 root : roots) count = product(count, messages_[root].front());
    return count;
  }

 private:
  StepView view(i64 number) const { return {words_.data() + starts_[number]}; }

  void eliminate(i64 number) {
    const StepView step = view(number);
    const i64 axes = step[kAxes], tables = step[kTables];
    i64 last = 0;
    for (i64 axis = 0; axis < axes; ++axis) last += (step.size(axis) - 1) * step.out_stride(axis);
    std::vector<LongInteger>& out = messages_[number];
    out.resize(last + 1);
    places_.resize(tables);
    for (i64 t = 0; t < tables; ++t) {
      const TableView table = step.table(t);
      places_[t] = table.offset() - (table.source() < 0 ? 0 : view(table.source())[kOut]);
    }
    digits_.assign(axes, 0);
    i64 place = 0;
    for (i64 cell = 0, cells = step.cells(); cell < cells; ++cell) {
      for (i64 value = 0; value < step[kDomain]; ++value) add_term(step, value, out[place]);
      for (i64 axis = axes - 1; axis >= 0; --axis) {
        const i64 moves = ++digits_[axis] < step.size(axis) ? 1 : 1 - step.size(axis);
        for (i64 t = 0; t < tables; ++t) places_[t] += moves * step.table(t).stride(axis);
        place += moves * step.out_stride(axis);
        if (moves == 1) break;
        digits_[axis] = 0;
      }
    }
  }

  // Adds the product of the tables' cells at a value of the eliminated variable.
  void add_term(StepView step, i64 value, LongInteger& sum) {
    factors_of_term_.clear();
    for (i64 t = 0; t < step[kTables]; ++t) {
      const TableView table = step.table(t);
      const i64 place = places_[t] + value * table.domain_stride();
      if (table.source() < 0) {
        if (!factors_[place]) return;
      } else {
        const LongInteger& message = messages_[table.source()][place];
        if (message.empty()) return;
        factors_of_term_.push_back(&message);
      }
    }
    if (factors_of_term_.empty()) return add(sum, one_);
    if (factors_of_term_.size() == 1) return add(sum, *factors_of_term_.front());
    // The short ones first.
    std::sort(factors_of_term_.begin(), factors_of_term_.end(), [](const auto* a, const auto* b) { return a->size() < b->size(); });
    LongInteger term = *factors_of_term_.front();
    for (std::size_t i = 1; i < factors_of_term_.size(); ++i) term = product(term, *factors_of_term_[i]);
    add(sum, term);
  }

  std::span<const i64> words_, starts_;
  const u64* factors_;
  std::vector<std::vector<LongInteger>> messages_;  // of each step, while they are read
  std::vector<i64> last_;                           // step that reads each message last
  std::vector<i64> places_, digits_;
  std::vector<const LongInteger*> factors_of_term_;
  const LongInteger one_{1};
};

}  // namespace

LongInteger exact_count(std::span<const i64> words, std::span<const i64> starts, std::span<const i64> roots, const u64* factors) {
  return LongRun(words, starts, factors).run(roots);
}

}  // namespace elimina
