// Groups of calls as work that several streams wait for.
//
// SPDX-License-Identifier: MIT
#include "tests/support/fake_nccl.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/fake_cuda_state.h"

namespace plumbline {
namespace {

constexpr nccl::Status kUnhandledCudaError = 1;
constexpr nccl::Status kInvalidArgument = 4;
constexpr nccl::Status kInvalidUsage = 5;

struct Rank {
  std::size_t communicator = 0;
  int number = 0;
  int ranks = 0;
  int gpu = 0;
};

struct Call {
  enum class Kind : std::uint8_t { send, receive, all_reduce };

  Kind kind;
  Rank rank;
  int peer = 0;
  CUdeviceptr memory = 0;
  std::size_t bytes = 0;
  int type = 0;
  FakeStream* stream = nullptr;
};

struct Library {
  std::map<const void*, std::unique_ptr<Rank>> ranks;
  std::size_t communicators = 0;
  int depth = 0;
  nccl::Status wrong = nccl::kSuccess;  ///< The first error of the group's calls.
  std::vector<Call> calls;
};

Library& library() {
  static Library one;
  return one;
}

nccl::Status fault(FakeCuda::State& s, const char* text, nccl::Status status) {
  s.fault(std::string("nccl: ") + text, CUDA_SUCCESS);
  return status;
}

unsigned char* bytes_at(CUdeviceptr pointer) {
  return reinterpret_cast<unsigned char*>(pointer);  // NOLINT(performance-no-int-to-ptr)
}

float element(const unsigned char* data, std::size_t i, int type) {
  if (type == nccl::kFloat) {
    float value = 0;
    std::memcpy(&value, data + i * sizeof value, sizeof value);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, data + i * sizeof half, sizeof half);
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

void set_element(unsigned char* data, std::size_t i, int type, float value) {
  if (type == nccl::kFloat) {
    std::memcpy(data + i * sizeof value, &value, sizeof value);
    return;
  }
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto half = static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  std::memcpy(data + i * sizeof half, &half, sizeof half);
}

/// One piece of work for which all streams wait, and after which all go on.
void meet(FakeCuda::State& s, const std::vector<Call>& calls, const char* what, std::uint64_t time,
          const std::function<void()>& act) {
  std::vector<FakeWorkPointer> before;
  before.reserve(calls.size());
  for (const Call& call : calls) before.push_back(call.stream->last);
  FakeTask task = s.task(*calls.front().stream, what);
  task.act = [&s, calls, time, act](const FakeTask&, std::uint64_t) {
    for (const Call& call : calls) {
      if (!s.is_memory(call.memory, call.bytes, "a call of NCCL")) return FakeDemand(time);
    }
    act();
    return FakeDemand(time);
  };
  const FakeWorkPointer work = s.works->add(std::move(task), calls.front().stream->lane, before);
  for (const Call& call : calls)
    call.stream->last = s.works->add(s.task(*call.stream, ""), call.stream->lane, {work});
}

std::uint64_t time_of_copy(const FakeCuda::State& s, std::size_t bytes) {
  return s.copy_time({}, bytes, false).nanoseconds;
}

void transfer(FakeCuda::State& s, const Call& send, const Call& receive) {
  meet(s, {send, receive}, "transfer", time_of_copy(s, send.bytes), [send, receive] {
    std::memcpy(bytes_at(receive.memory), bytes_at(send.memory), send.bytes);
  });
}

void all_reduce(FakeCuda::State& s, const std::vector<Call>& calls) {
  const std::size_t ranks = calls.size();
  const std::uint64_t time = 2 * (ranks - 1) * time_of_copy(s, calls.front().bytes / ranks);
  meet(s, calls, "all_reduce", time, [calls] {
    const int type = calls.front().type;
    const std::size_t width = type == nccl::kFloat ? sizeof(float) : sizeof(std::uint16_t);
    for (std::size_t i = 0; i < calls.front().bytes / width; ++i) {
      float sum = 0;
      for (const Call& call : calls) sum += element(bytes_at(call.memory), i, type);
      for (const Call& call : calls) set_element(bytes_at(call.memory), i, type, sum);
    }
  });
}

/// Whether two calls are the two ends of a transfer.
bool are_ends(const Call& send, const Call& receive) {
  return send.kind == Call::Kind::send && receive.kind == Call::Kind::receive &&
         send.rank.communicator == receive.rank.communicator && send.peer == receive.rank.number &&
         receive.peer == send.rank.number;
}

nccl::Status begin(FakeCuda::State& s, std::vector<Call> calls) {
  while (!calls.empty()) {
    const Call first = calls.front();
    std::vector<Call> partners;
    for (const Call& call : calls) {
      const bool same = call.rank.communicator == first.rank.communicator;
      if (first.kind == Call::Kind::all_reduce ? same && call.kind == first.kind
                                               : are_ends(first, call) || are_ends(call, first))
        partners.push_back(call);
    }
    if (first.kind != Call::Kind::all_reduce) partners.push_back(first);
    const auto wanted =
        first.kind == Call::Kind::all_reduce ? static_cast<std::size_t>(first.rank.ranks) : 2;
    if (partners.size() != wanted)
      return fault(s, "a call that has no partner in its group waits for ever", kInvalidUsage);
    for (const Call& call : partners) {
      if (call.bytes != first.bytes || call.type != first.type)
        return fault(s, "ranks want other sizes", kInvalidArgument);
      if (call.stream->capture != nullptr) return fault(s, "it is captured", kInvalidUsage);
    }
    if (first.kind == Call::Kind::all_reduce) {
      all_reduce(s, partners);
    } else {
      const bool sends = first.kind == Call::Kind::send;
      transfer(s, sends ? first : partners.front(), sends ? partners.front() : first);
    }
    std::erase_if(calls, [&](const Call& call) {
      return std::any_of(partners.begin(), partners.end(), [&](const Call& partner) {
        return partner.rank.communicator == call.rank.communicator &&
               partner.rank.number == call.rank.number && partner.kind == call.kind;
      });
    });
  }
  return nccl::kSuccess;
}

nccl::Status add(const char* name, Call::Kind kind, const void* data, std::size_t count, int type,
                 int peer, nccl::Communicator handle, CUstream stream) {
  FakeCuda::State& s = *fake_cuda_state();
  const std::lock_guard lock(s.mutex);
  const auto answered = [&](nccl::Status status) { return library().wrong = status; };
  if (s.enter(name)) return answered(kUnhandledCudaError);
  const auto found = library().ranks.find(handle);
  if (found == library().ranks.end())
    return answered(fault(s, "no such communicator", kInvalidArgument));
  const Rank& rank = *found->second;
  if (library().depth == 0)
    return answered(fault(s, "one thread that has all ranks needs a group", kInvalidUsage));
  FakeStream* const on = s.stream(stream);
  if (on == nullptr || on->context->green || on->context->gpu != rank.gpu)
    return answered(fault(s, "a stream of another device", kInvalidArgument));
  const std::size_t width = type == nccl::kFloat ? 4 : type == nccl::kBf16 ? 2 : 1;
  const auto memory = reinterpret_cast<CUdeviceptr>(data);
  if (!s.is_memory(memory, count * width, "a call of NCCL")) return answered(kInvalidArgument);
  library().calls.push_back({kind, rank, peer, memory, count * width, type, on});
  return nccl::kSuccess;
}

Nccl functions() {
  Nccl all{};
  all.GetVersion = [](int* version) {
    *version = 22809;
    return nccl::kSuccess;
  };
  all.GetErrorString = [](nccl::Status status) {
    return status == kUnhandledCudaError ? "unhandled cuda error" : "invalid usage";
  };
  all.GetLastError = [](nccl::Communicator) { return "Cuda failure"; };
  all.CommInitAll = [](nccl::Communicator* ranks, int count, const int* gpus) {
    FakeCuda::State& s = *fake_cuda_state();
    const std::lock_guard lock(s.mutex);
    if (s.enter("ncclCommInitAll")) return kUnhandledCudaError;
    if (std::set<int>(gpus, gpus + count).size() != static_cast<std::size_t>(count))
      return fault(s, "a GPU twice in a communicator", kInvalidUsage);
    const std::size_t communicator = library().communicators++;
    for (int i = 0; i < count; ++i) {
      auto rank = std::make_unique<Rank>(Rank{communicator, i, count, gpus[i]});
      ranks[i] = reinterpret_cast<nccl::Communicator>(rank.get());
      library().ranks.emplace(rank.get(), std::move(rank));
    }
    return nccl::kSuccess;
  };
  all.CommDestroy = [](nccl::Communicator rank) {
    return library().ranks.erase(rank) == 1 ? nccl::kSuccess : kInvalidArgument;
  };
  all.GroupStart = [] {
    ++library().depth;
    return nccl::kSuccess;
  };
  all.GroupEnd = [] {
    FakeCuda::State& s = *fake_cuda_state();
    nccl::Status status = nccl::kSuccess;
    {
      const std::lock_guard lock(s.mutex);
      const std::vector<Call> calls = std::exchange(library().calls, {});
      status = std::exchange(library().wrong, nccl::kSuccess);
      --library().depth;
      if (s.enter("ncclGroupEnd")) status = kUnhandledCudaError;
      if (status == nccl::kSuccess) status = begin(s, calls);
    }
    s.driver.cuCtxSetCurrent(nullptr);
    return status;
  };
  all.Send = [](const void* data, std::size_t count, int type, int peer, nccl::Communicator rank,
                CUstream stream) {
    return add("ncclSend", Call::Kind::send, data, count, type, peer, rank, stream);
  };
  all.Recv = [](void* data, std::size_t count, int type, int peer, nccl::Communicator rank,
                CUstream stream) {
    return add("ncclRecv", Call::Kind::receive, data, count, type, peer, rank, stream);
  };
  all.AllReduce = [](const void* data, void* result, std::size_t count, int type, int operation,
                     nccl::Communicator rank, CUstream stream) {
    if (data != result || operation != nccl::kSum) return kInvalidArgument;
    return add("ncclAllReduce", Call::Kind::all_reduce, data, count, type, 0, rank, stream);
  };
  return all;
}

}  // namespace

const Nccl& fake_nccl() {
  static const Nccl all = functions();
  return all;
}

std::size_t live_nccl_ranks() { return library().ranks.size(); }

}  // namespace plumbline
