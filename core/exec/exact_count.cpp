#include "exec/exact_count.hpp"

#include <algorithm>
#include <utility>

#include "elimina/program.hpp"
#include "exec/paths.hpp"
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

// Adds the product of two integers.
void add_product(LongInteger& to, const LongInteger& first, const LongInteger& other) {
  if (to.size() < first.size() + other.size() + 1) to.resize(first.size() + other.size() + 1);
  for (std::size_t i = 0; i < first.size(); ++i) {
    u64 carry = 0;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const Wide sum = Wide(first[i]) * other[j] + to[i + j] + carry;
      to[i + j] = u64(sum);
      carry = u64(sum >> 64);
    }
    for (std::size_t k = i + other.size(); carry; ++k) carry = __builtin_add_overflow(to[k], carry, &to[k]);
  }
  while (!to.empty() && !to.back()) to.pop_back();
}

LongInteger product(const LongInteger& first, const LongInteger& other) {
  LongInteger result;
  add_product(result, first, other);
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
      if (!eliminate(number)) return {};
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

  // Runs a step; returns false if all cells of its output are 0, because the total count is then 0 as well.
  bool eliminate(i64 number) {
    const StepView step = view(number);
    const i64 axes = step[kAxes], tables = step[kTables], domain = step[kDomain];
    i64 last = 0;
    for (i64 axis = 0; axis < axes; ++axis) last += (step.size(axis) - 1) * step.out_stride(axis);
    std::vector<LongInteger>& out = messages_[number];
    out.resize(last + 1);
    inputs_.resize(tables);
    for (i64 t = 0; t < tables; ++t) {
      const TableView table = step.table(t);
      const i64 source = table.source();
      inputs_[t] = source < 0 ? Input{factors_ + table.offset(), nullptr, table.domain_stride(), 0}
                              : Input{nullptr, messages_[source].data(), table.domain_stride(),
                                      table.offset() - view(source)[kOut]};
    }
    digits_.assign(axes, 0);
    i64 offset = 0;
    bool possible = false;
    for (i64 cell = 0, cells = step.cells(); cell < cells; ++cell) {
      sum_.clear();
      for (i64 value = 0; value < domain; ++value) add_term(value);
      possible |= !sum_.empty();
      out[offset] = sum_;
      for (i64 axis = axes - 1; axis >= 0; --axis) {
        const i64 moves = ++digits_[axis] < step.size(axis) ? 1 : 1 - step.size(axis);
        for (i64 t = 0; t < tables; ++t) inputs_[t].offset += moves * step.table(t).stride(axis);
        offset += moves * step.out_stride(axis);
        if (moves == 1) break;
        digits_[axis] = 0;
      }
    }
    return possible;
  }

  // Adds the product of the tables' cells at a value of the eliminated variable to `sum_`.
  void add_term(i64 value) {
    factors_of_term_.clear();
    for (const Input& input : inputs_) {
      const i64 offset = input.offset + value * input.domain_stride;
      if (!input.message) {
        if (!input.factor[offset]) return;
      } else if (input.message[offset].empty()) {
        return;
      } else {
        factors_of_term_.push_back(input.message + offset);
      }
    }
    const std::size_t count = factors_of_term_.size();
    if (count < 2) return add(sum_, count ? *factors_of_term_.front() : unit_);
    // The shortest factors first, so that the intermediate products stay short.
    std::sort(factors_of_term_.begin(), factors_of_term_.end(),
              [](const auto* a, const auto* b) { return a->size() < b->size(); });
    if (count > 2) {
      term_ = *factors_of_term_.front();
      for (std::size_t i = 1; i + 1 < count; ++i) term_ = product(term_, *factors_of_term_[i]);
    }
    add_product(sum_, count > 2 ? term_ : *factors_of_term_.front(), *factors_of_term_.back());
  }

  // A table of the step: a factor's cells, or a message's.
  struct Input {
    const u64* factor;
    const LongInteger* message;
    i64 domain_stride, offset;
  };

  std::span<const i64> words_, starts_;
  const u64* factors_;
  std::vector<std::vector<LongInteger>> messages_;  // messages of each step, until their last reader
  std::vector<i64> last_;                           // last step that reads each message
  std::vector<Input> inputs_;
  std::vector<i64> digits_;
  std::vector<const LongInteger*> factors_of_term_;
  LongInteger sum_, term_;
  const LongInteger unit_{1};
};

}  // namespace

LongInteger exact_count(std::span<const i64> words, std::span<const i64> starts, std::span<const i64> roots,
                        const u64* factors) {
  count_path(Path::long_integers);
  return LongRun(words, starts, factors).run(roots);
}

}  // namespace elimina
