// Large vectors use huge pages: without them, page faults take 40 % of a call on 10^6 variables, and TLB misses take
// more.
#if defined(__linux__)
#include <cstddef>
#include <cstdlib>
#include <new>

#include "exec/pages.hpp"

namespace {

// A block of this number of bytes contains a whole huge page, wherever it begins.
constexpr std::size_t kLarge = 2 * elimina::kHugePage;

}  // namespace

void* operator new(std::size_t bytes) {
  for (;;) {
    if (void* at = std::malloc(bytes ? bytes : 1)) {
      if (bytes >= kLarge) elimina::prefer_huge_pages(at, bytes);
      return at;
    }
    if (const auto handler = std::get_new_handler()) handler();
    else throw std::bad_alloc();
  }
}

void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
#endif
