#include "approx/block_gibbs.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>

#include "argument_checks.hpp"
#include "arrays.hpp"
#include "module.hpp"
#include "scope_lists.hpp"
#include "stop.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::approx {
namespace {

void make_sampler(BlockGibbs* self, Words<const std::int64_t> sizes, Words<const std::int64_t> starts,
                  Words<const std::int32_t> members, Words<const double> values, Words<const double> powers,
                  std::size_t chains, std::uint64_t seed, double max_cells, double seconds) {
  check_sizes(span_of(sizes));
  if (std::ranges::any_of(span_of(values), [](double value) { return !(value > 0 && value <= 1); }))
    throw nb::value_error("values are positive, and at most 1");
  const ScopeList scopes = scope_list_of(starts, members, sizes.size());
  std::int64_t cells = 0;
  for (std::size_t number = 0; number < scopes.count(); ++number) cells += cells_of(scopes[number], span_of(sizes));
  if (cells != std::int64_t(values.size())) throw nb::value_error("each cell of a factor has one value");
  if (powers.size() == 0 || powers(0) != 1) throw nb::value_error("the first power is 1");
  if (sizes.size() == 0 || !(max_cells >= double(std::ranges::max(span_of(sizes)))))
    throw nb::value_error("each variable has a table, and there is one");
  unlocked([&] {
    const TimeLimit limit(seconds);
    new (self) BlockGibbs(list_of(sizes), scopes, list_of(values), list_of(powers), chains, seed, max_cells);
  });
}

}  // namespace

void bind_block_gibbs(nb::module_& m) {
  nb::class_<BlockGibbs>(m, "BlockGibbs", "Gibbs sampling of blocks of variables.")
      .def("__init__", &make_sampler, "sizes"_a, "starts"_a, "members"_a, "values"_a, "powers"_a, "chains"_a, "seed"_a,
           "max_cells"_a, "seconds"_a,
           "Start chains at random states; the values of the factors are positive, and the first power is 1.")
      .def(
          "run",
          [](BlockGibbs& sampler, std::uint64_t sweeps, Words<double> sums, Words<double> draws, Words<double> moments,
             double seconds) {
            if (sums.size() != sampler.chains() * sampler.cells() ||
                draws.size() != sampler.chains() * sampler.variables() ||
                moments.size() != sampler.chains() * sampler.powers() * BlockGibbs::kMoments)
              throw nb::value_error("a sum has the wrong size");
            return unlocked([&] {
              const TimeLimit limit(seconds);
              return sampler.run(sweeps, span_of(sums), span_of(draws), span_of(moments));
            });
          },
          "sweeps"_a, "sums"_a, "draws"_a, "moments"_a, "seconds"_a,
          "Draw each variable of each chain at least once a sweep, and add up marginals given the other variables, and "
          "moments of the blocks' sums; return the number of sweeps.")
      .def_prop_ro("table_cells", &BlockGibbs::table_cells, "Cells of the largest block's tables.");
}

}  // namespace elimina::approx
