// By name first, then by order.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/transfer_matches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace plumbline {
namespace {

/// One op that needs data of another device, in one iteration.
struct Edge {
  std::size_t iteration = 0;
  Op consumer;
  const RunOp* from = nullptr;  ///< The op that makes the data.
  const RunOp* to = nullptr;
};

/// The edges between each ordered pair of devices, in the order in which the data was made.
using Edges = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Edge>>;

Edges edges_of(const RecordedRun& run) {
  Edges edges;
  for (std::size_t k = 0; k < run.iterations.size(); ++k) {
    std::map<Op, const RunOp*> ops;
    for (const auto& device : run.iterations[k].ops) {
      for (const RunOp& op : device) ops[op.op] = &op;
    }
    for (const auto& [op, to] : ops) {
      for (const bool split : {false, true}) {
        const auto needs = producer_of(op, run.stages, split);
        if (!needs || (split && op.kind == OpKind::forward)) continue;
        const auto from = ops.find(*needs);
        if (from == ops.end()) continue;
        const std::uint32_t sender = run.device_of(needs->stage.value);
        const std::uint32_t receiver = run.device_of(op.stage.value);
        if (sender != receiver) edges[{sender, receiver}].push_back({k, op, from->second, to});
      }
    }
  }
  for (auto& [pair, of] : edges) {
    std::stable_sort(of.begin(), of.end(), [](const Edge& a, const Edge& b) {
      return a.from->work.begin < b.from->work.begin;
    });
  }
  return edges;
}

/// The transfers of one rank that name their op: (sends, stage, is forward, micro-batch).
using Key = std::tuple<bool, std::uint32_t, bool, std::uint32_t>;
using Named = std::map<Key, std::vector<const RecordedTransfer*>>;

Named named_transfers(const RankRecording& recording) {
  Named named;
  for (const RecordedTransfer& transfer : recording.transfers) {
    if (!transfer.op || !transfer.op->stage || !transfer.op->micro_batch) continue;
    named[{transfer.sends, *transfer.op->stage, transfer.op->kind == OpKind::forward,
           *transfer.op->micro_batch}]
        .push_back(&transfer);
  }
  return named;
}

const std::vector<const RecordedTransfer*>* find(const Named& named, bool sends, const Op& op) {
  const auto at =
      named.find({sends, op.stage.value, op.kind == OpKind::forward, op.micro_batch.value});
  return at == named.end() ? nullptr : &at->second;
}

void set_sent(RunTransfer& transfer, const RecordedTransfer& recorded) {
  transfer.sent = recorded.span;
  transfer.bytes = std::max(transfer.bytes, recorded.bytes);
}

void set_received(RunTransfer& transfer, const RecordedTransfer& recorded) {
  transfer.received = recorded.span;
  transfer.is_whole = recorded.is_whole;
  transfer.bytes = std::max(transfer.bytes, recorded.bytes);
}

/// Of each edge the first send that ends no earlier than the op that made the data, and the last
/// receive that began before the op that needs it. They lie between the same op of the iteration
/// before and that of the one behind. Requires: edges of one op and one micro-batch, ascending.
void match_key(const std::vector<const Edge*>& edges,
               const std::vector<const RecordedTransfer*>* sends,
               const std::vector<const RecordedTransfer*>* receives, RecordedRun& run) {
  std::size_t next_send = 0, next_receive = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = *edges[i];
    const RunOp* const behind = i + 1 < edges.size() ? edges[i + 1]->from : nullptr;
    RunTransfer transfer;
    if (sends) {
      while (next_send < sends->size() && (*sends)[next_send]->span.end < edge.from->work.end)
        ++next_send;
      if (next_send < sends->size() &&
          (!behind || (*sends)[next_send]->span.begin < behind->work.begin))
        set_sent(transfer, *(*sends)[next_send++]);
    }
    if (receives) {
      const std::size_t first = next_receive;
      while (next_receive < receives->size() &&
             (*receives)[next_receive]->span.begin <= edge.to->work.begin)
        ++next_receive;
      if (next_receive > first) set_received(transfer, *(*receives)[next_receive - 1]);
    }
    if (transfer.sent || transfer.received)
      run.iterations[edge.iteration].transfers[edge.consumer] = transfer;
  }
}

void match_named(const Edges& edges, const std::vector<Named>& named, RecordedRun& run) {
  for (const auto& [pair, of] : edges) {
    const Named& sender = named[run.devices[pair.first].recording];
    const Named& receiver = named[run.devices[pair.second].recording];
    std::map<Op, std::vector<const Edge*>> by_op;
    for (const Edge& edge : of) by_op[edge.consumer].push_back(&edge);
    for (const auto& [consumer, same] : by_op)
      match_key(same, find(sender, true, same.front()->from->op), find(receiver, false, consumer),
                run);
  }
}

/// The transfers of a rank to or from another one, in their order.
std::vector<const RecordedTransfer*> with_peer(const RankRecording& recording, std::int64_t peer,
                                               bool sends) {
  std::vector<const RecordedTransfer*> found;
  for (const RecordedTransfer& transfer : recording.transfers) {
    if (!transfer.op && transfer.peer && transfer.sends == sends && *transfer.peer == peer)
      found.push_back(&transfer);
  }
  return found;
}

/// Takes out the transfers of iterations that were left out. A send of data cannot end before it
/// was made, and each send has its receive. Requires: as many sends as receives, and more than
/// edges.
void keep_those_of(const std::vector<Edge>& edges, std::vector<const RecordedTransfer*>& sends,
                   std::vector<const RecordedTransfer*>& receives) {
  std::vector<const RecordedTransfer*> kept_sends, kept_receives;
  std::size_t spare = sends.size() - edges.size();
  std::size_t at = 0;
  for (const Edge& edge : edges) {
    for (; spare > 0 && sends[at]->span.end < edge.from->work.end; --spare) ++at;
    kept_sends.push_back(sends[at]);
    kept_receives.push_back(receives[at]);
    ++at;
  }
  sends = std::move(kept_sends);
  receives = std::move(kept_receives);
}

/// Sends and receives in their order. Where ranks recorded different numbers of them, those of
/// iterations that were left out at the begin or the end come before or after: as many as the first
/// transfer allows are skipped.
void match_in_order(const Edges& edges, const std::vector<RankRecording>& recordings,
                    RecordedRun& run) {
  for (const auto& [pair, of] : edges) {
    const RunDevice& from = run.devices[pair.first];
    const RunDevice& to = run.devices[pair.second];
    if (from.recording == to.recording) continue;
    auto sends = with_peer(recordings[from.recording], to.rank, true);
    auto receives = with_peer(recordings[to.recording], from.rank, false);
    if (sends.size() == receives.size() && sends.size() > of.size())
      keep_those_of(of, sends, receives);
    // A send of data cannot end before it was made.
    while (!sends.empty() && sends.front()->span.end < of.front().from->work.end)
      sends.erase(sends.begin());
    if (sends.size() > of.size() && receives.size() >= sends.size()) sends.resize(of.size());
    while (receives.size() > of.size() && receives.front()->span.end < of.front().to->work.begin &&
           receives[receives.size() - of.size()]->span.begin <= of.front().to->work.begin)
      receives.erase(receives.begin());
    if (receives.size() > of.size()) receives.resize(of.size());
    if (sends.empty() && receives.empty()) continue;
    if (sends.size() != of.size() || receives.size() != of.size()) {
      run.notes.push_back(fmt::format(
          "rank {} sent {} times to rank {}, which received {} times, for {} ops: when transfers "
          "moved is unknown there",
          from.rank, sends.size(), to.rank, receives.size(), of.size()));
      continue;
    }
    for (std::size_t i = 0; i < of.size(); ++i) {
      RunTransfer& transfer = run.iterations[of[i].iteration].transfers[of[i].consumer];
      set_sent(transfer, *sends[i]);
      set_received(transfer, *receives[i]);
    }
  }
}

/// Receives that name neither an op nor a rank, in the order of the ops of their device.
void match_by_device(const Edges& edges, const std::vector<RankRecording>& recordings,
                     RecordedRun& run) {
  std::vector<std::vector<const Edge*>> needs(run.devices.size());
  for (const auto& [pair, of] : edges) {
    for (const Edge& edge : of) needs[pair.second].push_back(&edge);
  }
  for (std::size_t d = 0; d < needs.size(); ++d) {
    std::vector<const RecordedTransfer*> receives;
    for (const RecordedTransfer& one : recordings[run.devices[d].recording].transfers) {
      if (!one.op && !one.peer && !one.sends) receives.push_back(&one);
    }
    std::stable_sort(needs[d].begin(), needs[d].end(), [](const Edge* a, const Edge* b) {
      return a->to->work.begin < b->to->work.begin;
    });
    const auto set = [&](const Edge& edge, const RecordedTransfer& receive) {
      set_received(run.iterations[edge.iteration].transfers[edge.consumer], receive);
    };
    if (receives.size() == needs[d].size()) {
      for (std::size_t i = 0; i < receives.size(); ++i) set(*needs[d][i], *receives[i]);
      continue;
    }
    if (receives.empty()) continue;
    if (receives.size() < needs[d].size()) {
      run.notes.push_back(
          fmt::format("rank {} received {} times for {} ops: when data arrived is "
                      "unknown there",
                      run.devices[d].rank, receives.size(), needs[d].size()));
      continue;
    }
    // Iterations were left out: each op takes the last receive that began before it, from the end.
    auto receive = receives.rbegin();
    for (auto need = needs[d].rbegin(); need != needs[d].rend(); ++need) {
      while (receive != receives.rend() && (*receive)->span.begin > (*need)->to->work.begin)
        ++receive;
      if (receive == receives.rend()) break;
      if ((*receive)->span.end <= (*need)->to->work.begin) set(**need, **receive);
      ++receive;
    }
  }
}

}  // namespace

void match_transfers(RecordedRun& run, const std::vector<RankRecording>& recordings) {
  const Edges edges = edges_of(run);
  std::vector<Named> named;
  named.reserve(recordings.size());
  for (const RankRecording& recording : recordings) named.push_back(named_transfers(recording));
  const bool any_named =
      std::any_of(named.begin(), named.end(), [](const Named& one) { return !one.empty(); });
  if (any_named)
    match_named(edges, named, run);
  else
    match_in_order(edges, recordings, run);
  match_by_device(edges, recordings, run);
}

}  // namespace plumbline
