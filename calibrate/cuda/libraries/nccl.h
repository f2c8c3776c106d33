// Transfers of tensors between GPUs by NCCL, found at run time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "models/network/network.h"

/// The part of NCCL 2's C interface that is called. The library's header comes with the library,
/// not with CUDA's toolkit, and builds need neither. A test compares this part with the header if
/// that is there.
namespace plumbline::nccl {

using Communicator = struct CommunicatorOfRank*;
/// The library's enumerations are ints here.
using Status = int;

inline constexpr Status kSuccess = 0;
inline constexpr int kBytes = 1;  ///< ncclDataType_t: ncclUint8
inline constexpr int kFloat = 7;
inline constexpr int kBf16 = 9;
inline constexpr int kSum = 0;  ///< ncclRedOp_t

/// The library's functions, by their names without `nccl`.
struct Functions {
  Status (*GetVersion)(int*);
  const char* (*GetErrorString)(Status);
  const char* (*GetLastError)(Communicator);
  Status (*CommInitAll)(Communicator*, int count, const int* gpus);
  Status (*CommDestroy)(Communicator);
  Status (*GroupStart)();
  Status (*GroupEnd)();
  Status (*Send)(const void* data, std::size_t count, int type, int peer, Communicator, CUstream);
  Status (*Recv)(void* data, std::size_t count, int type, int peer, Communicator, CUstream);
  Status (*AllReduce)(const void* data, void* result, std::size_t count, int type, int operation,
                      Communicator, CUstream);
};

}  // namespace plumbline::nccl

/// Every function of the table.
#define PLUMBLINE_NCCL_CALLS(CALL) \
  CALL(GetVersion)                 \
  CALL(GetErrorString)             \
  CALL(GetLastError)               \
  CALL(CommInitAll)                \
  CALL(CommDestroy)                \
  CALL(GroupStart)                 \
  CALL(GroupEnd)                   \
  CALL(Send)                       \
  CALL(Recv)                       \
  CALL(AllReduce)

namespace plumbline {

using Nccl = nccl::Functions;

/// Loads the library from its path, or by its name, which the dynamic linker searches. It stays
/// loaded. Errors (no device): it cannot be loaded; it lacks a function.
Result<Nccl> load_nccl(const std::string& path);

/// "NCCL 2.28.9".
std::string name_of(const Nccl& library);

/// A call has failed that should not fail.
class NcclError : public std::runtime_error {
 public:
  /// `ncclCommInitAll: unhandled cuda error (Cuda failure 2 'out of memory')`.
  NcclError(const Nccl& library, std::string_view call, nccl::Status status);
};

/// The memory and stream of one rank in a call.
struct NcclEnd {
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;  ///< A stream of the rank's GPU.
};

/// GPUs that exchange tensors: rank i is the ith GPU. Calls only enqueue, on the streams of all
/// ranks that take part. The work begins when all of these streams are ready. Calls of one
/// communicator run in the order in which they were made, whatever their streams. Moved, not
/// copied. A call may change the current context.
class NcclCommunicator {
 public:
  /// Requires: each GPU occurs once, with its primary context retained. Errors: NcclError, as in
  /// the calls.
  NcclCommunicator(const Nccl& library, const std::vector<int>& gpus);
  NcclCommunicator(NcclCommunicator&& other) noexcept
      : library_(other.library_), ranks_(std::exchange(other.ranks_, {})) {}
  NcclCommunicator& operator=(NcclCommunicator&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(ranks_, other.ranks_);
    return *this;
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  /// Requires: nothing is enqueued any more.
  ~NcclCommunicator();

  /// Sends from one rank to another.
  void transfer(std::size_t from, const NcclEnd& sender, std::size_t to, const NcclEnd& receiver,
                std::size_t bytes) const;
  /// Sums all ranks' elements in place; one end per rank. Every rank gets the same bits.
  void all_reduce(const std::vector<NcclEnd>& ends, ElementType type, std::size_t elements) const;

 private:
  /// Makes all that `calls` enqueues begin as one.
  void together(const std::function<void()>& calls) const;
  void check(std::string_view call, nccl::Status status) const;

  const Nccl* library_;
  std::vector<nccl::Communicator> ranks_;
};

}  // namespace plumbline
