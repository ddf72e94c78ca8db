#include "approx/sampler.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "approx/particles.hpp"
#include "exec/run_threads.hpp"
#include "stop.hpp"

namespace elimina::approx {
namespace {

constexpr double kZero = -std::numeric_limits<double>::infinity();

// Mixes bits by a bijection: each bit of the result depends on all bits of the argument (variant 13 of D. Stafford's
// mixers).
u64 mixed(u64 bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

constexpr u64 kOdd = 0x9e3779b97f4a7c15u;

// Number of independent samples that are drawn together, and number of buckets between checks for a stop request.
constexpr i64 kLoneSamples = 64, kBucketsPerLook = 16;

double unit_interval(u64 bits) { return double(bits >> 11) * 0x1p-53; }

}  // namespace

struct Sampler::Block {
  explicit Block(i64 max_samples, i64 max_states)
      : keys(std::size_t(max_samples)), cells(std::size_t(max_samples)), norms(std::size_t(max_samples)),
        totals(std::size_t(max_samples)), values(std::size_t(max_states * max_samples)) {}

  std::int32_t* states = nullptr;  // states of the first sample, in the first row
  i64 row = 0;                     // distance between rows
  i64 count = 0;                   // number of samples
  double* logs = nullptr;
  std::vector<u64> keys;
  std::vector<i64> cells;
  std::vector<double> norms, totals, values;
};

Sampler::Sampler(std::span<const double> arena, std::span<const i64> words, std::span<const i64> sizes,
                 std::span<const std::uint8_t> is_weighted, i64 first, i64 last)
    : arena_(arena), sizes_(sizes.begin(), sizes.end()), first_(first), last_(last) {
  struct Read {
    i64 bucket;
    std::size_t position;
  };
  std::vector<Read> homes, origins;
  for (std::size_t position = 0; position < words.size(); position += 5 + 2 * std::size_t(words[position + 4])) {
    const i64 home = words[position + 1], origin = words[position + 3];
    if (home >= first && home < last) homes.push_back({home, position});
    if (origin >= first && origin < last && is_weighted[std::size_t(origin)]) origins.push_back({origin, position});
  }
  const auto by_bucket = [](const Read& a, const Read& b) { return a.bucket < b.bucket; };
  std::stable_sort(homes.begin(), homes.end(), by_bucket);
  std::stable_sort(origins.begin(), origins.end(), by_bucket);
  buckets_.resize(std::size_t(last - first));
  for (i64 v = first; v < last; ++v) {
    buckets_[std::size_t(v - first)].is_weighted = is_weighted[std::size_t(v)] != 0;
    largest_ = std::max(largest_, sizes_[std::size_t(v)]);
  }
  last_uses_.resize(sizes_.size());
  std::iota(last_uses_.begin(), last_uses_.end(), i64{0});
  // A sent message also has a stride along its home's variable, because that variable is drawn before the sender's.
  const auto table_of = [&](std::size_t position, bool is_sent) {
    const i64 begin = i64(strides_.size());
    if (is_sent && words[position + 1] >= 0) strides_.push_back({words[position + 1], words[position + 2]});
    for (i64 k = 0; k < words[position + 4]; ++k)
      strides_.push_back({words[position + 5 + 2 * std::size_t(k)], words[position + 6 + 2 * std::size_t(k)]});
    return Table{words[position], words[position + 2], begin, i64(strides_.size())};
  };
  const auto use = [&](const Table& table, i64 bucket) {
    for (i64 k = table.begin; k < table.end; ++k) {
      i64& last = last_uses_[std::size_t(strides_[std::size_t(k)].number)];
      last = std::min(last, bucket);
    }
  };
  std::size_t home = 0, origin = 0;
  for (i64 v = first; v < last; ++v) {
    Bucket& bucket = buckets_[std::size_t(v - first)];
    bucket.begin = i64(tables_.size());
    for (; home < homes.size() && homes[home].bucket == v; ++home)
      tables_.push_back(table_of(homes[home].position, false));
    bucket.end = i64(tables_.size());
    bucket.sent_begin = i64(messages_.size());
    for (; origin < origins.size() && origins[origin].bucket == v; ++origin)
      messages_.push_back(table_of(origins[origin].position, true));
    bucket.sent_end = i64(messages_.size());
    for (i64 t = bucket.begin; t < bucket.end; ++t) use(tables_[std::size_t(t)], v);
    for (i64 t = bucket.sent_begin; t < bucket.sent_end; ++t) use(messages_[std::size_t(t)], v);
  }
}

void Sampler::find_cells(const Table& table, Block& block) const {
  std::fill_n(block.cells.begin(), block.count, table.offset);
  for (i64 k = table.begin; k < table.end; ++k) {
    const auto [number, stride] = strides_[std::size_t(k)];
    const std::int32_t* states = block.states + number * block.row;
    for (i64 lane = 0; lane < block.count; ++lane) block.cells[std::size_t(lane)] += stride * states[lane];
  }
}

void Sampler::share_out(i64 number, Block& block) const {
  const Bucket& bucket = buckets_[std::size_t(number - first_)];
  const i64 size = sizes_[std::size_t(number)], count = block.count;
  double* const values = block.values.data();
  std::fill_n(values, size * count, 0.0);
  for (i64 t = bucket.begin; t < bucket.end; ++t) {
    const Table& table = tables_[std::size_t(t)];
    find_cells(table, block);
    for (i64 x = 0; x < size; ++x)
      for (i64 lane = 0; lane < count; ++lane)
        values[x * count + lane] += arena_[std::size_t(block.cells[std::size_t(lane)] + x * table.stride)];
  }
  for (i64 lane = 0; lane < count; ++lane) {
    double peak = kZero, total = 0;
    for (i64 x = 0; x < size; ++x) peak = std::max(peak, values[x * count + lane]);
    block.totals[std::size_t(lane)] = 0;
    block.norms[std::size_t(lane)] = kZero;
    if (peak == kZero) continue;
    for (i64 x = 0; x < size; ++x) {
      const double share = std::exp(values[x * count + lane] - peak);
      values[x * count + lane] = share;
      total += share;
    }
    block.totals[std::size_t(lane)] = total;
    block.norms[std::size_t(lane)] = bucket.is_weighted ? peak + std::log(total) : 0;
  }
}

void Sampler::draw_bucket(i64 number, Block& block) const {
  share_out(number, block);
  std::int32_t* const states = block.states + number * block.row;
  for (i64 lane = 0; lane < block.count; ++lane) {
    states[lane] = 0;
    const double total = block.totals[std::size_t(lane)];
    if (!(total > 0)) continue;
    double remaining = total * unit_interval(mixed(block.keys[std::size_t(lane)] + kOdd * u64(number + 1)));
    // Rounding may leave a remainder after the last possible state, which is then taken.
    for (i64 x = 0; x < sizes_[std::size_t(number)]; ++x) {
      const double share = block.values[std::size_t(x * block.count + lane)];
      if (!(share > 0)) continue;
      states[lane] = std::int32_t(x);
      remaining -= share;
      if (remaining < 0) break;
    }
  }
  weigh(buckets_[std::size_t(number - first_)], block);
}

void Sampler::weigh_bucket(i64 number, Block& block) const {
  share_out(number, block);
  const std::int32_t* const states = block.states + number * block.row;
  for (i64 lane = 0; lane < block.count; ++lane) {
    const bool is_possible =
        block.totals[std::size_t(lane)] > 0 && block.values[std::size_t(states[lane] * block.count + lane)] > 0;
    if (is_possible) continue;
    block.norms[std::size_t(lane)] = 0;
    block.logs[lane] = -kZero;
  }
  weigh(buckets_[std::size_t(number - first_)], block);
}

void Sampler::weigh(const Bucket& bucket, Block& block) const {
  for (i64 lane = 0; lane < block.count; ++lane) block.logs[lane] += block.norms[std::size_t(lane)];
  for (i64 t = bucket.sent_begin; t < bucket.sent_end; ++t) {
    find_cells(messages_[std::size_t(t)], block);
    for (i64 lane = 0; lane < block.count; ++lane)
      if (block.logs[lane] != kZero) block.logs[lane] -= arena_[std::size_t(block.cells[std::size_t(lane)])];
  }
}

template <class Work>
void Sampler::for_blocks(std::span<std::int32_t> states, std::span<double> logs, i64 block_samples, int threads,
                         Work work) const {
  const i64 count = i64(logs.size()), blocks = (count + block_samples - 1) / block_samples;
  std::atomic<i64> next = 0;
  std::atomic<bool> is_over = false;
  const auto run = [&](Call<bool()> is_to_end) {
    Block block(std::min(block_samples, count), largest_);
    block.row = count;
    for (i64 number; (number = next.fetch_add(1)) < blocks;) {
      const i64 begin = number * block_samples;
      block.states = states.data() + begin;
      block.count = std::min(block_samples, count - begin);
      block.logs = logs.data() + begin;
      if (!work(block, begin, is_to_end)) return;
    }
  };
  const int workers = int(std::min<i64>(threads, blocks));
  if (workers <= 1) run([&] { return stopped() && (is_over = true); });
  else
    run_threads(
        workers, [&](int) { run([&] { return is_over.load(std::memory_order_relaxed); }); }, [] {},
        [&] { is_over = true; });
  if (is_over) throw Stopped{};
}

void Sampler::draw(u64 seed, u64 start, i64 group, std::span<std::int32_t> states, std::span<double> logs,
                   std::span<double> sizes, int threads) const {
  const bool is_filter = group > 1;
  for_blocks(states, logs, is_filter ? group : kLoneSamples, threads,
             [&](Block& block, i64 begin, Call<bool()> is_to_end) {
               for (i64 lane = 0; lane < block.count; ++lane)
                 block.keys[std::size_t(lane)] = mixed(mixed(seed + kOdd) + start + u64(begin + lane));
               Particles particles(last_uses_, is_filter ? group : 0);
               if (is_filter) particles.begin(block.states, block.row, {block.logs, std::size_t(block.count)});
               for (i64 v = last_ - 1; v >= first_; --v) {
                 if ((last_ - 1 - v) % kBucketsPerLook == 0 && is_to_end()) return false;
                 draw_bucket(v, block);
                 if (!is_filter) continue;
                 particles.add(v);
                 if (buckets_[std::size_t(v - first_)].is_weighted)
                   particles.resample_if_uneven(v, unit_interval(mixed(~block.keys[0] + kOdd * u64(v + 1))));
               }
               if (is_filter) sizes[std::size_t(begin / group)] = particles.finish();
               return true;
             });
}

void Sampler::weigh_states(std::span<std::int32_t> states, std::span<double> logs, int threads) const {
  for_blocks(states, logs, kLoneSamples, threads, [&](Block& block, i64, Call<bool()> is_to_end) {
    for (i64 v = last_ - 1; v >= first_; --v) {
      if ((last_ - 1 - v) % kBucketsPerLook == 0 && is_to_end()) return false;
      weigh_bucket(v, block);
    }
    return true;
  });
}

void add_weights(std::span<const std::int32_t> states, std::span<const double> weights, i64 group, i64 first,
                 std::span<const i64> starts, StateSums sums) {
  const std::size_t count = weights.size(), step = std::size_t(group);
  const std::size_t cells = sums.squares.size(), folds = sums.weights.size() / cells;
  std::vector<double> totals, shares;
  for (std::size_t begin = 0; begin < count; begin += step)
    totals.push_back(std::accumulate(weights.begin() + i64(begin), weights.begin() + i64(begin + step), 0.0));
  Looks looks(64);
  for (std::size_t v = 0; v < starts.size(); ++v) {
    looks.look();
    const std::int32_t* const row = states.data() + v * count;
    const std::size_t start = std::size_t(starts[v]);
    std::size_t fold = std::size_t(first) % folds;
    for (std::size_t begin = 0; begin < count; begin += step, fold = fold + 1 < folds ? fold + 1 : 0) {
      double* const weights_of_fold = sums.weights.data() + fold * cells;
      for (std::size_t sample = begin; sample < begin + step; ++sample) {
        const std::size_t state = std::size_t(row[sample]);
        if (state >= shares.size()) shares.resize(state + 1);
        shares[state] += weights[sample];
      }
      for (std::size_t sample = begin; sample < begin + step; ++sample) {
        const std::size_t state = std::size_t(row[sample]);
        const double share = std::exchange(shares[state], 0.0);
        if (share == 0) continue;
        weights_of_fold[start + state] += share;
        sums.squares[start + state] += share * share;
        sums.products[start + state] += share * totals[begin / step];
      }
    }
  }
}

}  // namespace elimina::approx
