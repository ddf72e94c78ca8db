#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "approx/weighted_mini_buckets.hpp"
#include "arrays.hpp"
#include "module.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::approx {
namespace {

std::shared_ptr<WeightedMiniBuckets> make(const plan::PlannedTree& tree, Words<const double> values,
                                          Words<const double> weights, int shared) {
  if (i64(weights.size()) != tree.tree.size()) throw nb::value_error("each node has one weight");
  i64 cells = 0;
  for (i64 f = 0; f < tree.scopes.size(); ++f) cells += plan::cells_of(tree.scopes[f], tree.sizes);
  if (i64(values.size()) != cells) throw nb::value_error("each cell of a factor has one value");
  std::vector<double> logs = list_of(values), weight_list = list_of(weights);
  return unlocked(
      [&] { return std::make_shared<WeightedMiniBuckets>(tree, std::move(logs), std::move(weight_list), shared); });
}

void check(const WeightedMiniBuckets& mini_buckets, const Words<const double>& parameters) {
  if (i64(parameters.size()) != mini_buckets.parameters())
    throw nb::value_error("the number of parameters is another one");
}

void check_variables(const WeightedMiniBuckets& mini_buckets, std::size_t count) {
  if (count != mini_buckets.variables()) throw nb::value_error("each variable of the order has one number");
}

struct BoundGradient {
  double bound;
  Array<double> gradient;
};

}  // namespace

void bind_weighted_mini_buckets(nb::module_& m) {
  nb::class_<BoundGradient>(m, "BoundGradient", "A bound at parameters, and its slope there.")
      .def_ro("bound", &BoundGradient::bound, "Natural logarithm of the bound.")
      .def_ro("gradient", &BoundGradient::gradient, nb::rv_policy::reference, "Its derivatives by the parameters.");
  nb::class_<WeightedMiniBuckets>(m, "WeightedMiniBuckets",
                                  "Weighted mini-buckets over one tree, with gradients by weights and shifts.")
      .def(nb::new_(&make), "tree"_a, "values"_a, "weights"_a, "shared"_a,
           "Prepare the tables of a tree. `values`: logarithms of its factors over their sorted scopes, one "
           "after another; `weights`: weight of each node; `shared`: largest number of variables of a shift.")
      .def_static("bytes", &WeightedMiniBuckets::bytes, "tree"_a, "Return the bytes of a tree's messages and shares.")
      .def_prop_ro(
          "initial", [](const WeightedMiniBuckets& self) { return array_of(self.initial()); }, nb::rv_policy::reference,
          "Parameters without shifts, and with the given weights.")
      .def(
          "continued",
          [](const WeightedMiniBuckets& self, const WeightedMiniBuckets& other, Words<const double> parameters) {
            check(other, parameters);
            if (self.variables() != other.variables()) throw nb::value_error("the orders are of other lengths");
            return array_of(self.continued(other, span_of(parameters)));
          },
          "other"_a, "parameters"_a,
          "Return parameters that continue those of mini-buckets along the same order with another i-bound.")
      .def("release_tables", &WeightedMiniBuckets::release_tables,
           "Free the messages and shares until the next evaluation.")
      .def_prop_ro(
          "shift_cells", [](const WeightedMiniBuckets& self) { return array_of(self.shift_cells()); },
          nb::rv_policy::reference,
          "Number of cells of the table of each parameter that is a shift; the other parameters are the logarithms of "
          "the sizes of weights.")
      .def_prop_ro("rounding", &WeightedMiniBuckets::rounding, "Largest rounding error of the last bound.")
      .def_prop_ro(
          "marginals", [](const WeightedMiniBuckets& self) { return array_of(self.marginals()); },
          nb::rv_policy::reference, "Estimated marginals of the variables in elimination order, after `gradient`.")
      .def(
          "set_totals",
          [](WeightedMiniBuckets& self, Words<const double> totals) {
            check_variables(self, totals.size());
            self.set_totals(span_of(totals));
          },
          "totals"_a, "Set the sum of the weights of each variable, in elimination order.")
      .def(
          "fix",
          [](WeightedMiniBuckets& self, Words<const int> values) {
            check_variables(self, values.size());
            self.fix(span_of(values));
          },
          "values"_a, "Fix variables, in elimination order, to values; -1: the variable is summed over.")
      .def(
          "decode",
          [](const WeightedMiniBuckets& self, int count, unsigned seed) {
            return array_of(unlocked([&] { return self.decode(count, seed); }));
          },
          "count"_a, "seed"_a,
          "Return assignments, in elimination order and one after another, decoded from the messages of the "
          "last `bound`: the one with the best values, then random ones.")
      .def(
          "bound",
          [](WeightedMiniBuckets& self, Words<const double> parameters) {
            check(self, parameters);
            return unlocked([&] { return self.evaluate(span_of(parameters), nullptr); });
          },
          "parameters"_a, "Return the natural logarithm of the bound.")
      .def(
          "gradient",
          [](WeightedMiniBuckets& self, Words<const double> parameters) {
            check(self, parameters);
            std::vector<double> gradient;
            const double bound = unlocked([&] { return self.evaluate(span_of(parameters), &gradient); });
            return BoundGradient{bound, array_of(std::move(gradient))};
          },
          "parameters"_a, "Return the natural logarithm of the bound, and its gradient.");
}

}  // namespace elimina::approx
