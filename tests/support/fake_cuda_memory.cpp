// The fake driver's memory: allocations, pools, copies.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>

#include "tests/support/fake_cuda_state.h"

namespace plumbline {
namespace {

unsigned char* bytes_at(CUdeviceptr pointer) {
  return reinterpret_cast<unsigned char*>(pointer);  // NOLINT(performance-no-int-to-ptr)
}

FakePool* pool_of(FakeCuda::State& s, CUmemoryPool handle) {
  return s.find(s.pools, handle, "pool");
}

CUresult free_now(FakeCuda::State& s, CUdeviceptr pointer, bool is_host) {
  if (pointer == 0) return CUDA_SUCCESS;
  if (const auto refused = s.check_in_capture()) return *refused;
  const auto found = s.allocations.find(static_cast<std::uintptr_t>(pointer));
  if (found == s.allocations.end() || (found->second.gpu < 0) != is_host || found->second.freed)
    return s.fault("bad_pointer: a free of what is not allocated", CUDA_ERROR_INVALID_VALUE);
  s.works->finish_all();  // cuMemFree waits for the device
  if (FakePool* const pool = found->second.pool) pool->used -= found->second.size;
  s.release(pointer);
  return s.lost.value_or(CUDA_SUCCESS);
}

/// A copy between two places that stay valid until it runs.
FakeTask copy_task(FakeCuda::State& s, const FakeStream& stream, CUdeviceptr to, bool to_device,
                   CUdeviceptr from, bool from_device, std::size_t size, bool on_sms = false) {
  FakeTask task = s.task(stream, "copy");
  task.act = [&s, to, to_device, from, from_device, size, on_sms](const FakeTask& now,
                                                                  std::uint64_t) {
    const bool within = to_device && from_device;
    // Checked again: memory may have been freed before the copy ran.
    if ((!to_device || s.is_memory(to, size, "a copy to memory")) &&
        (!from_device || s.is_memory(from, size, "a copy from memory")) &&
        (!within || size <= s.options.max_moved))
      std::memmove(bytes_at(to), bytes_at(from), size);
    return s.copy_time(now, size, on_sms);
  };
  return task;
}

/// `on_sms`: the copy is within one GPU.
CUresult copy_on_device(FakeCuda::State& s, CUdeviceptr to, CUdeviceptr from, std::size_t size,
                        CUstream handle, bool on_sms) {
  FakeStream* const stream = s.stream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!s.is_memory(to, size, "a copy to memory") || !s.is_memory(from, size, "a copy from memory"))
    return CUDA_ERROR_INVALID_VALUE;
  return s.enqueue(*stream, copy_task(s, *stream, to, true, from, true, size, on_sms));
}

CUresult set(FakeCuda::State& s, CUdeviceptr to, const void* value, std::size_t width,
             std::size_t count, CUstream handle) {
  FakeStream* const stream = s.stream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!s.is_memory(to, width * count, "a memset")) return CUDA_ERROR_INVALID_VALUE;
  const auto* const first = static_cast<const unsigned char*>(value);
  FakeTask task = s.task(*stream, "set");
  task.act = [&s, to, count, pattern = std::vector<unsigned char>(first, first + width)](
                 const FakeTask& now, std::uint64_t) {
    const std::size_t size = pattern.size() * count;
    if (s.is_memory(to, size, "a memset") && size <= s.options.max_moved)
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(bytes_at(to) + i * pattern.size(), pattern.data(), pattern.size());
    return s.copy_time(now, size, true);
  };
  return s.enqueue(*stream, std::move(task));
}

void add_allocation_calls(CudaDriver& driver) {
  driver.cuMemAlloc = [](CUdeviceptr* pointer, std::size_t size) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemAlloc);
    const FakeContext* const context = s.current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (const auto refused = s.check_in_capture()) return *refused;
    return s.allocate(pointer, size, context->gpu, nullptr);
  };
  driver.cuMemFree = [](CUdeviceptr pointer) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemFree);
    return free_now(s, pointer, false);
  };
  driver.cuMemHostAlloc = [](void** pointer, std::size_t size, unsigned) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemHostAlloc);
    if (s.current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (const auto refused = s.check_in_capture()) return *refused;
    CUdeviceptr address = 0;
    const CUresult result = s.allocate(&address, size, -1, nullptr);
    if (result == CUDA_SUCCESS) *pointer = bytes_at(address);
    return result;
  };
  driver.cuMemHostGetDevicePointer = [](CUdeviceptr* address, void* pointer, unsigned) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemHostGetDevicePointer);
    if (!s.is_pinned(pointer)) return CUDA_ERROR_INVALID_VALUE;
    *address = reinterpret_cast<CUdeviceptr>(pointer);
    return CUDA_SUCCESS;
  };
  driver.cuMemFreeHost = [](void* pointer) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemFreeHost);
    return free_now(s, reinterpret_cast<CUdeviceptr>(pointer), true);
  };
  driver.cuMemGetInfo = [](std::size_t* free, std::size_t* total) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemGetInfo);
    const FakeContext* const context = s.current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *total = s.options.gpus[static_cast<std::size_t>(context->gpu)].memory;
    *free = *total - s.used(context->gpu);
    return CUDA_SUCCESS;
  };
}

std::uint64_t* pool_attribute(FakePool& pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return &pool.threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return &pool.reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return &pool.reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return &pool.used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return &pool.used_high;
    default:
      return nullptr;
  }
}

void add_pool_calls(CudaDriver& driver) {
  driver.cuMemPoolCreate = [](CUmemoryPool* pool, const CUmemPoolProps* properties) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemPoolCreate);
    const int gpu = properties->location.id;
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || gpu < 0 ||
        gpu >= static_cast<int>(s.options.gpus.size()))
      return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<FakePool>();
    made->gpu = gpu;
    *pool = s.put<CUmemoryPool>(s.pools, std::move(made));
    return CUDA_SUCCESS;
  };
  driver.cuMemPoolDestroy = [](CUmemoryPool handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemPoolDestroy);
    const FakePool* const pool = pool_of(s, handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (auto& [pointer, allocation] : s.allocations) {
      if (allocation.pool != pool) continue;
      if (!allocation.freed)
        s.fault("destroy_order: a pool goes before what is in it", CUDA_SUCCESS);
      allocation.pool = nullptr;
    }
    s.pools.erase(handle);
    return CUDA_SUCCESS;
  };
  driver.cuMemPoolGetAttribute = [](CUmemoryPool handle, CUmemPool_attribute attribute,
                                    void* value) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemPoolGetAttribute);
    FakePool* const pool = pool_of(s, handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t* const place = pool_attribute(*pool, attribute);
    if (place == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    std::memcpy(value, place, sizeof *place);
    return CUDA_SUCCESS;
  };
  driver.cuMemPoolSetAttribute = [](CUmemoryPool handle, CUmemPool_attribute attribute,
                                    void* value) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemPoolSetAttribute);
    FakePool* const pool = pool_of(s, handle);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
        attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
        attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
      return CUDA_SUCCESS;
    std::uint64_t given = 0;
    std::memcpy(&given, value, sizeof given);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      pool->threshold = given;
      return CUDA_SUCCESS;
    }
    if (given != 0) return CUDA_ERROR_INVALID_VALUE;  // a high-water mark can only be reset
    if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
      pool->used_high = pool->used;
    } else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
      pool->reserved_high = pool->reserved;
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  };
  driver.cuMemAllocFromPoolAsync = [](CUdeviceptr* pointer, std::size_t size, CUmemoryPool handle,
                                      CUstream on) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemAllocFromPoolAsync);
    FakePool* const pool = pool_of(s, handle);
    const FakeStream* const stream = s.stream(on);
    if (pool == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != nullptr)
      return s.fault("capture: an allocation", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUresult result = s.allocate(pointer, size, pool->gpu, pool);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      s.works->finish_all();  // runs the enqueued frees
      result = s.allocate(pointer, size, pool->gpu, pool);
    }
    if (result != CUDA_SUCCESS) return result;
    constexpr std::uint64_t kPage = 2 << 20;
    pool->used += size;
    pool->used_high = std::max(pool->used_high, pool->used);
    pool->reserved = std::max(pool->reserved, (pool->used + kPage - 1) / kPage * kPage);
    pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
    return CUDA_SUCCESS;
  };
  driver.cuMemFreeAsync = [](CUdeviceptr pointer, CUstream on) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemFreeAsync);
    FakeStream* const stream = s.stream(on);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture != nullptr)
      return s.fault("capture: a free", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    const auto found = s.allocations.find(static_cast<std::uintptr_t>(pointer));
    if (found == s.allocations.end() || found->second.freed)
      return s.fault("bad_pointer: a free of what is not allocated", CUDA_ERROR_INVALID_VALUE);
    found->second.freed = true;
    if (FakePool* const pool = found->second.pool) pool->used -= found->second.size;
    FakeTask task = s.task(*stream, "free");
    task.act = [&s, pointer](const FakeTask&, std::uint64_t) {
      s.release(pointer);
      return FakeDemand(0);
    };
    return s.enqueue(*stream, std::move(task));
  };
}

void add_copy_calls(CudaDriver& driver) {
  driver.cuMemcpyAsync = [](CUdeviceptr to, CUdeviceptr from, std::size_t size,
                            CUstream stream) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemcpyAsync);
    return copy_on_device(s, to, from, size, stream, true);
  };
  driver.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, std::size_t size,
                                CUstream stream) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemcpyDtoDAsync);
    return copy_on_device(s, to, from, size, stream, true);
  };
  driver.cuMemcpyPeerAsync = [](CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                                std::size_t size, CUstream stream) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemcpyPeerAsync);
    return copy_on_device(s, to, from, size, stream, false);
  };
  driver.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, std::size_t size,
                                CUstream handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemcpyDtoHAsync);
    FakeStream* const stream = s.stream(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!s.is_memory(from, size, "a copy from memory")) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = s.enqueue(
        *stream, copy_task(s, *stream, reinterpret_cast<CUdeviceptr>(to), false, from, true, size));
    const bool waits = stream->capture == nullptr && !s.is_pinned(to);
    return result != CUDA_SUCCESS || !waits ? result : s.finish(stream->last);
  };
  driver.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, std::size_t size,
                                CUstream handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemcpyHtoDAsync);
    FakeStream* const stream = s.stream(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!s.is_memory(to, size, "a copy to memory")) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != nullptr || s.is_pinned(from)) {
      return s.enqueue(*stream, copy_task(s, *stream, to, true, reinterpret_cast<CUdeviceptr>(from),
                                          false, size));
    }
    // Pageable memory is read before the call returns.
    const auto* const first = static_cast<const unsigned char*>(from);
    FakeTask task = s.task(*stream, "copy");
    task.act = [&s, to, staged = std::vector<unsigned char>(first, first + size)](
                   const FakeTask& now, std::uint64_t) {
      if (s.is_memory(to, staged.size(), "a copy to memory"))
        std::memcpy(bytes_at(to), staged.data(), staged.size());
      return s.copy_time(now, staged.size(), false);
    };
    return s.enqueue(*stream, std::move(task));
  };
  driver.cuMemsetD8Async = [](CUdeviceptr to, unsigned char value, std::size_t count,
                              CUstream stream) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemsetD8Async);
    return set(s, to, &value, sizeof value, count, stream);
  };
  driver.cuMemsetD32Async = [](CUdeviceptr to, unsigned value, std::size_t count,
                               CUstream stream) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuMemsetD32Async);
    return set(s, to, &value, sizeof value, count, stream);
  };
}

}  // namespace

void add_fake_memory_calls(CudaDriver& driver) {
  add_allocation_calls(driver);
  add_pool_calls(driver);
  add_copy_calls(driver);
}

}  // namespace plumbline
