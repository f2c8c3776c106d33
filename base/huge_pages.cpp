// Alignment, and advice to the system.
//
// SPDX-License-Identifier: MIT
#include "base/huge_pages.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace plumbline {

HugeBlock::HugeBlock(std::size_t bytes) {
  constexpr std::size_t page = std::size_t{2} << 20;
  const std::size_t alignment = bytes < page ? alignof(std::max_align_t) : page;
  const std::size_t size =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, size)));
  if (!data_) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (alignment == page) madvise(data_.get(), size, MADV_HUGEPAGE);  // a hint: it need not help
#endif
}

void HugeBlock::Free::operator()(std::byte* data) const { std::free(data); }

}  // namespace plumbline
