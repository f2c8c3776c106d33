// Communicators and groups of calls.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/nccl.h"

#include <fmt/format.h>

#include "base/bug.h"
#include "calibrate/cuda/driver/driver.h"
#include "calibrate/cuda/libraries/libraries.h"

namespace plumbline {
namespace {

constexpr std::string_view kNcclHelp =
    "install NCCL 2 for CUDA 13, or name the folder of libnccl.so.2 in PLUMBLINE_CUDA_LIBRARIES; "
    "or leave --nccl out";

/// The details behind a status.
std::string last_error(const Nccl& library) {
  const char* const text = library.GetLastError(nullptr);
  return text == nullptr || *text == '\0' ? "" : fmt::format(" ({})", printable(text));
}

int type_of(ElementType type) { return type == ElementType::bf16 ? nccl::kBf16 : nccl::kFloat; }

}  // namespace

Result<Nccl> load_nccl(const std::string& path) {
  const auto loaded = open_cuda_library("NCCL", path, kNcclHelp);
  if (!loaded) return loaded.problems();
  Nccl library{};
  CudaSymbols symbols(*loaded);
#define PLUMBLINE_NCCL_LOAD(call) symbols.find(library.call, "nccl" #call);
  PLUMBLINE_NCCL_CALLS(PLUMBLINE_NCCL_LOAD)
#undef PLUMBLINE_NCCL_LOAD
  if (auto missing = symbols.missing(path, kNcclHelp)) return *std::move(missing);
  return library;
}

std::string name_of(const Nccl& library) {
  int version = 0;
  if (library.GetVersion(&version) != nccl::kSuccess || version <= 0) return "NCCL";
  return fmt::format("NCCL {}", cuda_library_version(static_cast<std::uint64_t>(version)));
}

NcclError::NcclError(const Nccl& library, std::string_view call, nccl::Status status)
    : std::runtime_error(
          fmt::format("{}: {}{}", call, library.GetErrorString(status), last_error(library))) {}

NcclCommunicator::NcclCommunicator(const Nccl& library, const std::vector<int>& gpus)
    : library_(&library), ranks_(gpus.size()) {
  check("ncclCommInitAll",
        library.CommInitAll(ranks_.data(), static_cast<int>(gpus.size()), gpus.data()));
}

NcclCommunicator::~NcclCommunicator() {
  for (const nccl::Communicator rank : ranks_) library_->CommDestroy(rank);
}

void NcclCommunicator::transfer(std::size_t from, const NcclEnd& sender, std::size_t to,
                                const NcclEnd& receiver, std::size_t bytes) const {
  PLUMBLINE_CHECK(from < ranks_.size() && to < ranks_.size() && from != to, from, to);
  together([&] {
    check("ncclSend", library_->Send(memory_at(sender.memory), bytes, nccl::kBytes,
                                     static_cast<int>(to), ranks_[from], sender.stream));
    check("ncclRecv", library_->Recv(memory_at(receiver.memory), bytes, nccl::kBytes,
                                     static_cast<int>(from), ranks_[to], receiver.stream));
  });
}

void NcclCommunicator::all_reduce(const std::vector<NcclEnd>& ends, ElementType type,
                                  std::size_t elements) const {
  PLUMBLINE_CHECK(ends.size() == ranks_.size(), ends.size(), ranks_.size());
  together([&] {
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      void* const memory = memory_at(ends[rank].memory);
      check("ncclAllReduce", library_->AllReduce(memory, memory, elements, type_of(type),
                                                 nccl::kSum, ranks_[rank], ends[rank].stream));
    }
  });
}

void NcclCommunicator::together(const std::function<void()>& calls) const {
  check("ncclGroupStart", library_->GroupStart());
  try {
    calls();
  } catch (...) {
    library_->GroupEnd();  // as every group must; it begins nothing after an error
    throw;
  }
  check("ncclGroupEnd", library_->GroupEnd());
}

void NcclCommunicator::check(std::string_view call, nccl::Status status) const {
  if (status != nccl::kSuccess) throw NcclError(*library_, call, status);
}

}  // namespace plumbline
