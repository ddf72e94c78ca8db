#include "neighbours.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "stop.hpp"

namespace elimina::tsp {

namespace {

constexpr int kNearest = 5, kSpread = 5;

class Finder {
 public:
  explicit Finder(Distances distances)
      : distances_(distances), n_(distances.cities), each_(std::min(kNearest + kSpread, n_ - 1)),
        others_(static_cast<std::size_t>(n_ - 1)) {}

  int each() const { return each_; }

  // Finds the neighbours of a city. Cities at equal distance are ordered by their numbers, counted from this city on,
  // so that cities at the same site have different neighbours.
  void find(int city, std::vector<int>& result) {
    const std::int32_t* row = distances_.row(city);
    const auto closer = [this, row, city](int a, int b) {
      return std::pair(row[a], after(city, a)) < std::pair(row[b], after(city, b));
    };
    std::iota(others_.begin(), others_.end(), city + 1);
    for (int& other : others_) other = other < n_ ? other : other - n_;
    const auto enough = others_.begin() + each_;
    std::nth_element(others_.begin(), enough - 1, others_.end(), closer);
    std::sort(others_.begin(), enough, closer);
    chosen_.assign(others_.begin(), others_.begin() + std::min(kNearest, each_));
    spread(city, closer);
    for (auto other = others_.begin(); static_cast<int>(chosen_.size()) < each_; ++other) choose(*other);
    std::sort(chosen_.begin(), chosen_.end(), closer);
    result.insert(result.end(), chosen_.begin(), chosen_.end());
  }

 private:
  int after(int city, int other) const { return other > city ? other - city : other - city + n_; }

  void choose(int other) {
    if (std::find(chosen_.begin(), chosen_.end(), other) == chosen_.end()) chosen_.push_back(other);
  }

  // Chooses neighbours in the Gabriel graph: the nearest city, then the nearest one that is not behind a chosen city.
  template <class Closer>
  void spread(int city, const Closer& closer) {
    const std::int32_t* row = distances_.row(city);
    remaining_.clear();
    for (const int other : others_)
      if (row[other] > 0) remaining_.push_back(other);
    while (!remaining_.empty() && static_cast<int>(chosen_.size()) < each_) {
      const int nearest = *std::min_element(remaining_.begin(), remaining_.end(), closer);
      choose(nearest);
      const std::int32_t* from_nearest = distances_.row(nearest);
      const double to_nearest = square(row[nearest]);
      std::erase_if(remaining_, [&](int other) {
        return other == nearest || to_nearest + square(from_nearest[other]) < square(row[other]);
      });
    }
  }

  static double square(std::int32_t x) { return static_cast<double>(x) * x; }

  Distances distances_;
  int n_, each_;
  std::vector<int> others_, remaining_, chosen_;
};

}  // namespace

Neighbours find_neighbours(Distances distances) {
  Finder finder(distances);
  Neighbours result{finder.each(), {}};
  result.list.reserve(static_cast<std::size_t>(distances.cities) * static_cast<std::size_t>(result.each));
  bool goes_on = true;
  for (int city = 0; city < distances.cities; ++city) {
    if (city % kCitiesBetweenStops == 0 && goes_on) goes_on = !stopped();
    if (goes_on) finder.find(city, result.list);
    else
      for (int k = 1; k <= result.each; ++k) result.list.push_back((city + k) % distances.cities);
  }
  return result;
}

}  // namespace elimina::tsp
