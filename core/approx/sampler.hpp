// Samples of the distribution that the tables of buckets define, drawn one variable after another.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::approx {

// Draws variables from the tables of their buckets. A bucket's tables are over its variable and variables with higher
// numbers, and the highest number is drawn first. A variable is drawn in proportion to the product of its bucket's
// tables, which hold natural logarithms.
// A weighted bucket multiplies the sample's weight by (sum of that product over its variable) / (product of the
// messages that the bucket has sent). If weighted mini-buckets sent them, this quotient is at most 1 (Hoelder's
// inequality). The bucket of a variable that was eliminated exactly needs no weight: the quotient is 1.
class Sampler {
 public:
  // `words`: for each table its offset in the arena, its home (the number of the bucket that reads it; -1: a constant),
  // the stride of the home's variable, its origin (the number of the bucket that sent it; -1: a factor), and its other
  // variables: their number, then each with its stride. `sizes`: sizes of all variables; `is_weighted`: true for
  // weighted buckets. Numbers in [`first`, `last`) are drawn.
  Sampler(std::span<const double> arena, std::span<const i64> words, std::span<const i64> sizes,
          std::span<const std::uint8_t> is_weighted, i64 first, i64 last);

  // Draws samples in groups of `group`. Random numbers depend only on the seed, the sample's number (from `start` on)
  // and the variable. The samples of a group are a particle filter: if few of them have most of the weight, they are
  // resampled. The mean of a group's weights stays unbiased, and groups are independent. In groups of 1, samples are
  // independent. `states`: a row for each variable. `logs`: the natural logarithm of each sample's weight is added; it
  // is minus infinity if a variable had no possible state. `sizes`: for each group, the effective number of independent
  // samples for the variables that were drawn first; not written for groups of 1.
  void draw(u64 seed, u64 start, i64 group, std::span<std::int32_t> states, std::span<double> logs,
            std::span<double> sizes, int threads) const;

  // Adds the natural logarithm of the weight that each sample would have if it had been drawn independently: infinity
  // if it cannot be drawn.
  void weigh_states(std::span<std::int32_t> states, std::span<double> logs, int threads) const;

 private:
  struct Stride {
    i64 number, stride;
  };
  struct Table {
    i64 offset, stride;
    i64 begin, end;  // range of its strides
  };
  struct Bucket {
    i64 begin = 0, end = 0;            // range of its tables
    i64 sent_begin = 0, sent_end = 0;  // range of its messages
    bool is_weighted = false;
  };
  struct Block;

  // Calls `work(block, number of its first sample, is_to_end)` for blocks of at most `block_samples` samples. A thread
  // ends when `work` returns false. The function `is_to_end` returns true on a stop request, after which Stopped is
  // thrown.
  template <class Work>
  void for_blocks(std::span<std::int32_t> states, std::span<double> logs, i64 block_samples, int threads,
                  Work work) const;
  // Computes the bucket's distribution for each sample of a block: values divided by the largest one, their sum, and
  // the logarithm of the factor by which the sample's weight changes (0 if the bucket is not weighted).
  void share_out(i64 number, Block& block) const;
  void draw_bucket(i64 number, Block& block) const;
  void weigh_bucket(i64 number, Block& block) const;
  void find_cells(const Table& table, Block& block) const;
  void weigh(const Bucket& bucket, Block& block) const;

  std::span<const double> arena_;
  std::vector<i64> sizes_;
  i64 first_, last_, largest_ = 1;
  std::vector<Bucket> buckets_;  // buckets from `first_` on
  std::vector<i64> last_uses_;   // for each variable, the lowest bucket that reads its state, or the variable itself
  std::vector<Table> tables_, messages_;
  std::vector<Stride> strides_;
};

// Sums of samples' weights by the states of variables, one variable after another.
struct StateSums {
  std::span<double> weights;   // sum of the weights of samples with the state, for one fold after another
  std::span<double> squares;   // sum over groups: the square of the total weight of the group's samples with the state
  std::span<double> products;  // sum over groups: the total weight of samples with the state times that of all samples
};

// Adds the weights of samples in groups of `group`; successive groups go to successive folds, and to the first one
// again after the last. `states`: a row for each variable; `starts`: for each row, position in the sums of the
// variable's first state; `first`: number of the first group.
void add_weights(std::span<const std::int32_t> states, std::span<const double> weights, i64 group, i64 first,
                 std::span<const i64> starts, StateSums sums);

}  // namespace elimina::approx
