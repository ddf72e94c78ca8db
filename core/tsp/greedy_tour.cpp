#include "greedy_tour.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

namespace elimina::tsp {

namespace {

class Paths {
 public:
  explicit Paths(int cities)
      : joined_(static_cast<std::size_t>(cities), {-1, -1}), above_(static_cast<std::size_t>(cities)) {
    std::iota(above_.begin(), above_.end(), 0);
  }

  void join(int a, int b) {
    if (!is_end(a) || !is_end(b) || root(a) == root(b)) return;
    above_[index(root(a))] = root(b);
    attach(a, b);
    attach(b, a);
  }

  bool is_end(int city) const { return joined_[index(city)][1] < 0; }

  // Appends the cities of a path, from one end on.
  void walk(int city, std::vector<int>& tour) const {
    for (int before = -1; city >= 0;) {
      tour.push_back(city);
      const auto [first, second] = joined_[index(city)];
      const int next = first != before ? first : second;
      before = std::exchange(city, next);
    }
  }

 private:
  static std::size_t index(int city) { return static_cast<std::size_t>(city); }

  void attach(int a, int b) { joined_[index(a)][joined_[index(a)][0] >= 0] = b; }

  int root(int city) {
    while (above_[index(city)] != city) city = above_[index(city)] = above_[index(above_[index(city)])];
    return city;
  }

  std::vector<std::array<int, 2>> joined_;
  std::vector<int> above_;
};

}  // namespace

std::vector<int> greedy_tour(Distances distances, const Neighbours& neighbours) {
  const int n = distances.cities;
  std::vector<std::tuple<std::int32_t, int, int>> edges;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < neighbours.each; ++k) {
      const int j = neighbours.of(i)[k];
      edges.emplace_back(distances.row(i)[j], std::min(i, j), std::max(i, j));
    }
  std::sort(edges.begin(), edges.end());
  Paths paths(n);
  for (const auto& [length, i, j] : edges) paths.join(i, j);
  // Joins the end of a path to the nearest end of the remaining ones.
  std::vector<int> tour, ends;
  for (int i = 0; i < n; ++i)
    if (paths.is_end(i)) ends.push_back(i);
  std::vector<std::uint8_t> is_done(static_cast<std::size_t>(n), 0);
  for (int from = ends.front(); from >= 0;) {
    paths.walk(from, tour);
    const int last = tour.back();
    is_done[static_cast<std::size_t>(from)] = is_done[static_cast<std::size_t>(last)] = 1;
    std::erase_if(ends, [&](int city) { return is_done[static_cast<std::size_t>(city)] != 0; });
    const auto nearest = std::min_element(ends.begin(), ends.end(),
                                          [row = distances.row(last)](int a, int b) { return row[a] < row[b]; });
    from = nearest == ends.end() ? -1 : *nearest;
  }
  return tour;
}

}  // namespace elimina::tsp
