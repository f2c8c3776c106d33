// Tensors between GPUs by NCCL, found at run time.
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

/// The part of NCCL 2's C interface that is called: its header comes with the library, not with
/// CUDA's toolkit, and builds need neither. A test compares it with the header where that is there.
namespace plumbline::nccl {

using Communicator = struct CommunicatorOfRank*;
/// The enumerations are ints.
using Status = int;

inline constexpr Status kSuccess = 0;
inline constexpr int kBytes = 1;  ///< ncclDataType_t: ncclUint8
inline constexpr int kFloat = 7;
inline constexpr int kBf16 = 9;
inline constexpr int kSum = 0;  ///< ncclRedOp_t

/// The library's functions, by their names there without `nccl`.
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

/// Every one of them.
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

/// From a library's path, or its name, which is looked for as the dynamic linker does; it stays
/// loaded. Errors (no device): it cannot be loaded; it lacks a function.
Result<Nccl> load_nccl(const std::string& path);

/// "NCCL 2.28.9".
std::string name_of(const Nccl& library);

/// A call has failed where it should not.
class NcclError : public std::runtime_error {
 public:
  /// `ncclCommInitAll: unhandled cuda error (Cuda failure 2 'out of memory')`.
  NcclError(const Nccl& library, std::string_view call, nccl::Status status);
};

/// What one rank gives to a call, and takes from it.
struct NcclEnd {
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;  ///< Of the rank's GPU.
};

/// GPUs that exchange tensors: rank i is the ith of them. Its calls only enqueue, on the streams of
/// all that take part, and what is enqueued there begins when all of these are ready. Calls of one
/// communicator come in the order in which they were made, whatever their streams. Moved, not
/// copied. Whatever context is current may be another one behind a call.
class NcclCommunicator {
 public:
  /// Requires: each GPU once, its primary context retained. Errors: NcclError, as in the calls.
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
  /// Nothing is enqueued any more.
  ~NcclCommunicator();

  /// From one rank to another.
  void transfer(std::size_t from, const NcclEnd& sender, std::size_t to, const NcclEnd& receiver,
                std::size_t bytes) const;
  /// The sum of all ranks' elements, in place; one end for each rank. The same bits everywhere.
  void all_reduce(const std::vector<NcclEnd>& ends, ElementType type, std::size_t elements) const;

 private:
  /// Begins all that the calls enqueue as one.
  void together(const std::function<void()>& calls) const;
  void check(std::string_view call, nccl::Status status) const;

  const Nccl* library_;
  std::vector<nccl::Communicator> ranks_;
};

}  // namespace plumbline
