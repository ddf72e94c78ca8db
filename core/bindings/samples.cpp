#include <nanobind/ndarray.h>

#include <cstdint>

#include "approx/sampler.hpp"
#include "arrays.hpp"
#include "module.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::approx {
namespace {

using Rows = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstRows = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A sampler, and the arena that it reads.
struct BoundSampler {
  Words<const double> arena;
  std::size_t numbers;
  Sampler sampler;
};

}  // namespace

void bind_samples(nb::module_& m) {
  nb::class_<BoundSampler>(m, "Sampler", "Samples from tables of logarithms: see core/approx/sampler.hpp.")
      .def(
          "__init__",
          [](BoundSampler* self, const Words<const double>& arena, const Words<const i64>& words,
             const Words<const i64>& sizes, const Words<const std::uint8_t>& is_weighted, i64 first, i64 last) {
            if (is_weighted.size() != sizes.size() || first < 0 || last > i64(sizes.size()))
              throw nb::value_error("numbers do not match the sizes");
            new (self) BoundSampler{
                arena, sizes.size(),
                Sampler(span_of(arena), span_of(words), span_of(sizes), span_of(is_weighted), first, last)};
          },
          "arena"_a, "words"_a, "sizes"_a, "is_weighted"_a, "first"_a, "last"_a)
      .def(
          "draw",
          [](const BoundSampler& self, u64 seed, u64 start, const Rows& states, const Words<double>& logs,
             const Words<double>& sizes, int threads) {
            if (states.shape(0) != self.numbers || states.shape(1) != logs.size())
              throw nb::value_error("states have a row for each variable, and a column for each sample");
            if (sizes.size() != 0 && logs.size() % sizes.size() != 0)
              throw nb::value_error("groups of samples have the same size");
            unlocked([&] {
              const i64 group = sizes.size() == 0 ? 1 : i64(logs.size() / sizes.size());
              self.sampler.draw(seed, start, group, {states.data(), states.size()}, span_of(logs), span_of(sizes),
                                threads);
            });
          },
          "seed"_a, "start"_a, "states"_a, "logs"_a, "sizes"_a, "threads"_a,
          "Draw samples with the numbers from `start` on: write them into int32 `states`, a row for each "
          "variable, and add the logarithms of their weights to `logs`. There is a particle filter for each "
          "of `sizes`, which become effective sizes; if these are empty, samples are independent.")
      .def(
          "weigh",
          [](const BoundSampler& self, const Rows& states, const Words<double>& logs, int threads) {
            if (states.shape(0) != self.numbers || states.shape(1) != logs.size())
              throw nb::value_error("states have a row for each variable, and a column for each sample");
            unlocked([&] { self.sampler.weigh_states({states.data(), states.size()}, span_of(logs), threads); });
          },
          "states"_a, "logs"_a, "threads"_a,
          "Add the logarithms of the weights that independent samples with these states would have; infinity: "
          "such samples are never drawn.");
  m.def(
      "add_weights",
      [](const ConstRows& states, const Words<const double>& weights, i64 group, i64 first,
         const Words<const i64>& starts, const Words<double>& sums, const Words<double>& squares,
         const Words<double>& products) {
        if (states.shape(0) != starts.size() || states.shape(1) != weights.size())
          throw nb::value_error("states have a row for each variable, and a column for each sample");
        if (group < 1 || i64(weights.size()) % group != 0)
          throw nb::value_error("groups of samples have the same size");
        if (squares.size() == 0 || sums.size() % squares.size() != 0 || products.size() != squares.size())
          throw nb::value_error("sums have a cell for each state in each fold, squares and products for each state");
        unlocked([&] {
          add_weights({states.data(), states.size()}, span_of(weights), group, first, span_of(starts),
                      {span_of(sums), span_of(squares), span_of(products)});
        });
      },
      "states"_a, "weights"_a, "group"_a, "first"_a, "starts"_a, "sums"_a, "squares"_a, "products"_a,
      "Add up the weights of samples in groups by the states that samples have: sums of weights, for one "
      "fold after another, sums of squares of a group's weight with a state, and sums of products of that "
      "weight and the group's whole weight. Group `first` is the first one; each group goes to the next "
      "fold.");
}

}  // namespace elimina::approx
