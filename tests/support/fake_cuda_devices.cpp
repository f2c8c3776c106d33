// The fake driver's GPUs, contexts and modules.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>

#include "tests/support/fake_cuda_state.h"

namespace plumbline {
namespace {

/// The contexts that this thread has pushed; none from an earlier fake driver.
std::vector<FakeContext*>& stack_of(const FakeCuda::State& state) {
  thread_local int generation = 0;
  thread_local std::vector<FakeContext*> stack;
  if (generation != state.generation) stack.clear();
  generation = state.generation;
  return stack;
}

/// The context of a handle. Null if no such context lives.
FakeContext* context_of(FakeCuda::State& s, CUcontext handle) {
  auto* const context = reinterpret_cast<FakeContext*>(handle);
  if (s.greens.count(context) > 0) return context;
  for (const auto& primary : s.primaries)
    if (primary.get() == context && primary->retained > 0) return context;
  s.fault("bad_handle: no such context", CUDA_ERROR_INVALID_CONTEXT);
  return nullptr;
}

bool is_gpu(const FakeCuda::State& s, int ordinal) {
  return ordinal >= 0 && ordinal < static_cast<int>(s.options.gpus.size());
}

CUdevResource sm_resource(const FakeGpu& gpu, unsigned first, unsigned sms) {
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = sms;
  resource.sm.minSmPartitionSize = gpu.min_partition;
  resource.sm.smCoscheduledAlignment = gpu.alignment;
  std::memcpy(resource._internal_padding, &first, sizeof first);
  return resource;
}

unsigned first_sm(const CUdevResource& resource) {
  unsigned first = 0;
  std::memcpy(&first, resource._internal_padding, sizeof first);
  return first;
}

struct ErrorText {
  CUresult result;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE",
     "uncorrectable ECC error encountered"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
};

const ErrorText* error_text(CUresult result) {
  const auto* const found =
      std::find_if(std::begin(kErrors), std::end(kErrors),
                   [&](const ErrorText& error) { return error.result == result; });
  return found == std::end(kErrors) ? nullptr : found;
}

void add_gpu_calls(CudaDriver& driver) {
  driver.cuInit = [](unsigned) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuInit);
    return CUDA_SUCCESS;
  };
  driver.cuDriverGetVersion = [](int* version) -> CUresult {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorName = [](CUresult result, const char** name) -> CUresult {
    const ErrorText* const text = error_text(result);
    *name = text == nullptr ? nullptr : text->name;
    return text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  };
  driver.cuGetErrorString = [](CUresult result, const char** string) -> CUresult {
    const ErrorText* const text = error_text(result);
    *string = text == nullptr ? nullptr : text->text;
    return text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  };
  driver.cuDeviceGet = [](CUdevice* device, int ordinal) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDeviceGet);
    *device = ordinal;
    return is_gpu(s, ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  };
  driver.cuDeviceGetCount = [](int* count) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDeviceGetCount);
    *count = static_cast<int>(s.options.gpus.size());
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetName = [](char* name, int size, CUdevice device) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDeviceGetName);
    if (!is_gpu(s, device) || size < 1) return CUDA_ERROR_INVALID_DEVICE;
    const std::string& text = s.options.gpus[static_cast<std::size_t>(device)].name;
    const std::size_t length = std::min(text.size(), static_cast<std::size_t>(size) - 1);
    std::memcpy(name, text.data(), length);
    name[length] = '\0';
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetUuid = [](CUuuid* uuid, CUdevice device) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDeviceGetUuid);
    if (!is_gpu(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    std::memset(uuid->bytes, device + 1, sizeof uuid->bytes);
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute,
                                   CUdevice device) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDeviceGetAttribute);
    if (!is_gpu(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
      case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = static_cast<int>(s.options.gpus[static_cast<std::size_t>(device)].sms);
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = 2048;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = 0;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *value = 1'000'000;  // kHz: a cycle a nanosecond
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = 1 << 20;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = 227 << 10;
        return CUDA_SUCCESS;
      case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  };
  driver.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice device) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDeviceTotalMem);
    if (!is_gpu(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = s.options.gpus[static_cast<std::size_t>(device)].memory;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceCanAccessPeer = [](int* can, CUdevice from, CUdevice to) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDeviceCanAccessPeer);
    if (!is_gpu(s, from) || !is_gpu(s, to)) return CUDA_ERROR_INVALID_DEVICE;
    *can = s.options.peers && from != to ? 1 : 0;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetDevResource = [](CUdevice device, CUdevResource* resource,
                                     CUdevResourceType type) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDeviceGetDevResource);
    if (!is_gpu(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    const FakeGpu& gpu = s.options.gpus[static_cast<std::size_t>(device)];
    *resource = sm_resource(gpu, 0, gpu.sms);
    return CUDA_SUCCESS;
  };
}

void add_context_calls(CudaDriver& driver) {
  driver.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDevicePrimaryCtxRetain);
    if (!is_gpu(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    FakeContext* const primary = s.primaries[static_cast<std::size_t>(device)].get();
    ++primary->retained;
    *context = reinterpret_cast<CUcontext>(primary);
    return CUDA_SUCCESS;
  };
  driver.cuDevicePrimaryCtxRelease = [](CUdevice device) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDevicePrimaryCtxRelease);
    if (!is_gpu(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    FakeContext& primary = *s.primaries[static_cast<std::size_t>(device)];
    if (primary.retained == 0)
      return s.fault("bad_handle: a primary context released too often",
                     CUDA_ERROR_INVALID_CONTEXT);
    --primary.retained;
    return CUDA_SUCCESS;
  };
  driver.cuCtxSetCurrent = [](CUcontext handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuCtxSetCurrent);
    auto& stack = stack_of(s);
    if (!stack.empty()) stack.pop_back();
    if (handle == nullptr) return CUDA_SUCCESS;
    FakeContext* const context = context_of(s, handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    stack.push_back(context);
    return CUDA_SUCCESS;
  };
  driver.cuCtxGetCurrent = [](CUcontext* context) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuCtxGetCurrent);
    const auto& stack = stack_of(s);
    *context = stack.empty() ? nullptr : reinterpret_cast<CUcontext>(stack.back());
    return CUDA_SUCCESS;
  };
  driver.cuCtxPushCurrent = [](CUcontext handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuCtxPushCurrent);
    FakeContext* const context = context_of(s, handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    stack_of(s).push_back(context);
    return CUDA_SUCCESS;
  };
  driver.cuCtxPopCurrent = [](CUcontext* context) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuCtxPopCurrent);
    auto& stack = stack_of(s);
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = reinterpret_cast<CUcontext>(stack.back());
    stack.pop_back();
    return CUDA_SUCCESS;
  };
  driver.cuCtxSynchronize = []() -> CUresult {
    PLUMBLINE_FAKE_CALL(cuCtxSynchronize);
    const FakeContext* const context = s.current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (const auto refused = s.check_in_capture()) return *refused;
    CUresult result = CUDA_SUCCESS;
    for (const auto& [handle, stream] : s.streams)
      if (stream->context == context) result = s.finish(stream->last);
    return result;
  };
  driver.cuCtxEnablePeerAccess = [](CUcontext handle, unsigned) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuCtxEnablePeerAccess);
    const FakeContext* const to = context_of(s, handle);
    const FakeContext* const from = s.current();
    if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const bool can = s.options.peers && to->gpu != from->gpu;
    return can ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  };
}

void add_green_calls(CudaDriver& driver) {
  driver.cuDevSmResourceSplitByCount = [](CUdevResource* result, unsigned* groups,
                                          const CUdevResource* input, CUdevResource* remaining,
                                          unsigned, unsigned min) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDevSmResourceSplitByCount);
    if (groups == nullptr || input == nullptr || min > input->sm.smCount)
      return CUDA_ERROR_INVALID_VALUE;
    FakeGpu gpu;
    gpu.min_partition = input->sm.minSmPartitionSize;
    gpu.alignment = std::max(input->sm.smCoscheduledAlignment, 1U);
    const unsigned asked = std::max({min, gpu.min_partition, 1U});
    const unsigned each = (asked + gpu.alignment - 1) / gpu.alignment * gpu.alignment;
    const unsigned stray = s.options.gpus.front().stray;  // the one that is split
    const unsigned room = std::min((input->sm.smCount - stray) / each, s.options.max_groups);
    if (result == nullptr) {
      *groups = room;
      return CUDA_SUCCESS;
    }
    *groups = std::min(*groups, room);
    unsigned first = first_sm(*input);
    for (unsigned i = 0; i < *groups; ++i, first += each) result[i] = sm_resource(gpu, first, each);
    if (remaining != nullptr)
      *remaining = sm_resource(gpu, first, input->sm.smCount - *groups * each);
    return CUDA_SUCCESS;
  };
  driver.cuDevResourceGenerateDesc = [](CUdevResourceDesc* description, CUdevResource* resources,
                                        unsigned count) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuDevResourceGenerateDesc);
    if (count != 1) return CUDA_ERROR_NOT_SUPPORTED;
    auto made = std::make_unique<FakeDescription>();
    *made = {first_sm(*resources), resources->sm.smCount};
    *description = s.put<CUdevResourceDesc>(s.descriptions, std::move(made));
    return CUDA_SUCCESS;
  };
  driver.cuGreenCtxCreate = [](CUgreenCtx* green, CUdevResourceDesc handle, CUdevice device,
                               unsigned flags) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuGreenCtxCreate);
    if (!is_gpu(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    const FakeDescription* const description = s.find(s.descriptions, handle, "description");
    if (description == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM)
      return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<FakeContext>();
    *made = {device, true, description->first_sm, description->sms, 0};
    *green = s.put<CUgreenCtx>(s.greens, std::move(made));
    return CUDA_SUCCESS;
  };
  driver.cuGreenCtxDestroy = [](CUgreenCtx handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuGreenCtxDestroy);
    FakeContext* const green = s.find(s.greens, handle, "green context");
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const auto is_inside = [&](const auto& entry) { return entry.second->context == green; };
    if (std::any_of(s.streams.begin(), s.streams.end(), is_inside) ||
        std::any_of(s.events.begin(), s.events.end(), is_inside) ||
        std::any_of(s.modules.begin(), s.modules.end(), is_inside))
      s.fault("destroy_order: a green context goes before what is in it", CUDA_SUCCESS);
    const auto& stack = stack_of(s);
    if (std::find(stack.begin(), stack.end(), green) != stack.end())
      s.fault("destroy_order: a green context goes while it is current", CUDA_SUCCESS);
    s.greens.erase(handle);
    return CUDA_SUCCESS;
  };
  driver.cuGreenCtxGetDevResource = [](CUgreenCtx handle, CUdevResource* resource,
                                       CUdevResourceType type) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuGreenCtxGetDevResource);
    const FakeContext* const green = s.find(s.greens, handle, "green context");
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *resource = sm_resource(s.options.gpus[static_cast<std::size_t>(green->gpu)], green->first_sm,
                            green->sms);
    return CUDA_SUCCESS;
  };
  driver.cuCtxFromGreenCtx = [](CUcontext* context, CUgreenCtx handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuCtxFromGreenCtx);
    FakeContext* const green = s.find(s.greens, handle, "green context");
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *context = reinterpret_cast<CUcontext>(green);
    return CUDA_SUCCESS;
  };
}

void add_module_calls(CudaDriver& driver) {
  driver.cuModuleLoadData = [](CUmodule* module, const void* image) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuModuleLoadData);
    FakeContext* const context = s.current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<FakeModule>();
    made->context = context;
    *module = s.put<CUmodule>(s.modules, std::move(made));
    return CUDA_SUCCESS;
  };
  driver.cuModuleUnload = [](CUmodule handle) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuModuleUnload);
    const FakeModule* const module = s.find(s.modules, handle, "module");
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (auto function = s.functions.begin(); function != s.functions.end();)
      function = function->second->module == module ? s.functions.erase(function) : ++function;
    s.modules.erase(handle);
    return CUDA_SUCCESS;
  };
  driver.cuModuleGetFunction = [](CUfunction* function, CUmodule handle,
                                  const char* name) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuModuleGetFunction);
    FakeModule* const module = s.find(s.modules, handle, "module");
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const auto kernel = s.kernels.find(name);
    if (kernel == s.kernels.end()) return CUDA_ERROR_NOT_FOUND;
    auto made = std::make_unique<FakeFunction>();
    *made = {module, name, kernel->second, 48 << 10};
    *function = s.put<CUfunction>(s.functions, std::move(made));
    return CUDA_SUCCESS;
  };
  driver.cuFuncSetAttribute = [](CUfunction handle, CUfunction_attribute attribute,
                                 int value) -> CUresult {
    PLUMBLINE_FAKE_CALL(cuFuncSetAttribute);
    FakeFunction* const function = s.find(s.functions, handle, "function");
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      if (value < 0 || value > 227 << 10) return CUDA_ERROR_INVALID_VALUE;
      function->max_shared = static_cast<unsigned>(value);
    }
    return CUDA_SUCCESS;
  };
}

}  // namespace

FakeContext* FakeCuda::State::current() {
  const auto& stack = stack_of(*this);
  return stack.empty() ? nullptr : stack.back();
}

void add_fake_device_calls(CudaDriver& driver) {
  add_gpu_calls(driver);
  add_context_calls(driver);
  add_green_calls(driver);
  add_module_calls(driver);
}

}  // namespace plumbline
