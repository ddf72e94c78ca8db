// Paths of the executors: pieces of code that compute a step, or a part of an answer, in their own way. Tests count how
// often each is taken, to see which code the models of a generator reach. The list includes the paths that Python
// takes.
#pragma once
#include <cstdint>
#include <string_view>

namespace elimina {

// The prefix of a path's name is its requirement: `cuda` a GPU, `avx512` this instruction set, `vector` any vector
// instructions.
// clang-format off
#define ELIMINA_PATHS(path)                                  \
  /* steps on dense tables (core/exec/dense) */              \
  path(plain, "plain")                                       \
  path(plain_of_nothing, "plain-of-nothing")                 \
  path(small, "vector-small")                                \
  path(small_scattered, "vector-small-scattered")            \
  path(small_permuted, "avx512-small-permuted")              \
  path(product, "product")                                   \
  path(product_batch, "product-batch")                       \
  path(product_contiguous_rows, "product-contiguous-rows")   \
  path(product_scattered_rows, "product-scattered-rows")     \
  path(product_contiguous_columns, "product-contiguous-columns") \
  path(product_scattered_columns, "product-scattered-columns") \
  path(tile, "tile")                                         \
  path(tile_rhs, "tile-rhs")                                 \
  path(tile_scalar, "tile-scalar")                           \
  path(tile_rows, "vector-tile-rows")                        \
  path(tile_turns, "vector-tile-turns")                      \
  path(tile_past_caches, "vector-tile-past-caches")          \
  path(tile_constant, "tile-constant")                       \
  path(tile_many_streamed, "vector-tile-many-streamed")      \
  path(tile_dot, "vector-tile-dot")                          \
  path(tile_dot_rhs, "vector-tile-dot-rhs")                  \
  path(pack_runs, "pack-runs")                               \
  path(pack_gathered, "pack-gathered")                       \
  path(pack_transposed, "avx512-pack-transposed")            \
  path(pack_permuted, "avx512-pack-permuted")                \
  path(matching, "matching")                                 \
  path(several_variables, "several-variables")               \
  path(several_threads, "several-threads")                   \
  path(slice, "slice")                                       \
  path(decode, "decode")                                     \
  path(case_network, "case-network")                         \
  path(case_plan, "case-plan")                               \
  path(long_integers, "long-integers")                       \
  /* steps on sparse tables (core/exec/sparse) */            \
  path(join_plain, "join-plain")                             \
  path(join_product, "join-product")                         \
  path(join_pairs, "join-pairs")                             \
  path(join_runs, "join-runs")                               \
  path(join_grid, "join-grid")                               \
  path(join_grid_eliminating, "join-grid-eliminating")       \
  path(join_eliminating, "join-eliminating")                 \
  path(join_with_lookup, "join-with-lookup")                 \
  path(join_with_bounds, "join-with-bounds")                 \
  path(join_split_group, "join-split-group")                 \
  path(rows_project, "rows-project")                         \
  path(rows_semi_join, "rows-semi-join")                     \
  path(rows_sort_small, "rows-sort-small")                   \
  path(rows_sort_dealt, "rows-sort-dealt")                   \
  path(rows_sort_large_bucket, "rows-sort-large-bucket")     \
  path(rows_move, "rows-move")                               \
  path(rows_from_dense, "rows-from-dense")                   \
  path(rows_to_dense, "rows-to-dense")                       \
  path(rows_long_keys, "rows-long-keys")                     \
  path(rows_decode, "rows-decode")                           \
  /* tables on their way into an arena (core/tables) */      \
  path(encode_large, "encode-large")                         \
  path(encode_groups, "encode-groups")                       \
  /* runs that Python divides */                             \
  path(slices, "slices")                                     \
  path(filtered_slices, "filtered-slices")                   \
  path(segments, "segments")                                 \
  path(scratch_tiles, "scratch-tiles")                       \
  path(rows_dense_steps, "rows-dense-steps")                 \
  path(rows_turned_dense, "rows-turned-dense")               \
  path(rows_bounds, "rows-bounds")                           \
  path(mini_buckets, "mini-buckets")                         \
  path(weighted_mini_buckets, "weighted-mini-buckets")       \
  path(logarithms, "logarithms")                             \
  path(upward_and_downward, "upward-and-downward")           \
  path(batch_cases, "batch-cases")                           \
  path(batch_plans, "batch-plans")                           \
  /* launches on a GPU */                                    \
  path(cuda_forest, "cuda-forest")                           \
  path(cuda_tile, "cuda-tile")                               \
  path(cuda_product, "cuda-product")                         \
  path(cuda_faces, "cuda-faces")                             \
  path(cuda_matching, "cuda-matching")                       \
  path(cuda_split_sums, "cuda-split-sums")                   \
  path(cuda_library, "cuda-library")                         \
  path(cuda_tiles_of_host, "cuda-tiles-of-host")             \
  path(cuda_tiles_of_scratch, "cuda-tiles-of-scratch")       \
  path(cuda_shards, "cuda-shards")                           \
  path(cuda_rows, "cuda-rows")                               \
  path(cuda_clusters, "cuda-clusters")
// clang-format on

enum class Path : int {
#define ELIMINA_PATH(name, text) name,
  ELIMINA_PATHS(ELIMINA_PATH)
#undef ELIMINA_PATH
};

// Resets all counts to 0; counting starts if `on` is true.
void count_paths(bool on);
bool are_paths_counted();
// Counts a path. Call it once for one or more steps, never for each cell.
void count_path(Path path);
// Throws std::out_of_range for a name that is not in the list.
void count_path(std::string_view name);
int path_total();
std::string_view path_name(int number);
std::int64_t path_count(int number);

}  // namespace elimina
