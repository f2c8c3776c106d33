#!/usr/bin/env python3
# Writes profiler traces of an invented pipeline-parallel run, one file a rank, and the truth about that run.
# SPDX-License-Identifier: MIT
"""Usage: make_traces.py OUT_FOLDER [options]        (--help lists them)

It shares nothing with Plumbline. A small simulation of its own says when each op begins and ends; then each rank's file
is written in one of three forms, in the rank's own clock. OUT_FOLDER gets rank0.json ... and truth.json.

The simulation. A rank runs its ops in order. An F needs the activation of the stage before, a B or an I the gradient of
the stage after. A transfer is sent when its op has ended; each direction of a link carries one at a time. An op begins
at max(end of the rank's op before, arrival), plus the host's lateness. After its ops a rank reduces its gradients with
the other replicas, if there are any, and runs the optimizer. The next iteration begins when all ranks have ended.

The truth. All times are whole nanoseconds since `epoch_ns`. A file shows the time t as
epoch_ns + t + clock_offset_ns + floor(t * drift_ppb / 10^9), rounded down to microseconds in the form legacy.
An iteration lasts from the first op of any rank to the last end of an optimizer of any rank.
A rank's idle time has five causes:
  fill        until the rank's first op begins
  dependency  of a gap before an op: until the op on the other rank that makes its input has ended
  transfer    from then until the input has arrived (waiting for the link is a part of it)
  overhead    from then until the op begins; also from the last op to the optimizer, an all-reduce included
  drain       from the end of the rank's optimizer
Ops, optimizer and idle time add up to the iteration. `bubble_fraction` is 1 - time of ops / (ranks * iteration);
`kernels_ns` leaves out the short gaps between the kernels of an op (form gpu). Of each rank and iteration there are
  ops         [kind, stage, micro_batch, begin, end], in order
  transfers   [kind, stage_from, stage_to, micro_batch, begin, end], those it sends: F activations, B gradients
"""
import argparse
import gzip
import json
import os
import random

MICROSECOND = 1000  # in ns, as all times here
STREAM_COMPUTE, STREAM_LOADER, STREAM_REDUCE = 7, 13, 17
STREAMS = {("send", "F"): 20, ("recv", "F"): 24, ("send", "B"): 28, ("recv", "B"): 32}
ELEMENTS = 4 << 20  # of a message: 8 MiB in BFloat16
LATENCY, WIRE_TIME = 20 * MICROSECOND, 170 * MICROSECOND
REDUCE_TIME, OPTIMIZER_TIME = 600 * MICROSECOND, 400 * MICROSECOND
BETWEEN_ITERATIONS = 300 * MICROSECOND
EPOCH = {"gpu": 1_700_000_000 * 10**9, "cpu": 1_700_000_000 * 10**9, "legacy": 10**9}
KERNELS = {
    "F": ["nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT", "void at::native::vectorized_elementwise_kernel<4, "
          "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}>(int)"],
    "B": ["nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp"
          "<c10::BFloat16, at::native::func_wrapper_t<c10::BFloat16> > >(at::native::ReduceOp<c10::BFloat16>)"],
}
SEND_RECV = {False: "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
             True: "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"}
ADAM = ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
        "FusedOptimizerTensorListMetadata<4> >()")


# What happens.

class Op:
    """F, B, I or W of a micro-batch. `transfer` brings its input from another rank, where it was made at `produced`."""

    def __init__(self, kind, stage, micro_batch):
        self.kind, self.stage, self.micro_batch = kind, stage, micro_batch
        self.begin = self.end = self.late = 0
        self.transfer = self.produced = None

    def sends(self, stages):
        """What is sent and to which stage, or None."""
        if self.kind == "F" and self.stage + 1 < stages:
            return "F", self.stage + 1
        if self.kind in "BI" and self.stage > 0:
            return "B", self.stage - 1
        return None

    def receives(self, stages):
        """What is needed from another rank, or None."""
        if self.kind == "F" and self.stage > 0:
            return "F"
        return "B" if self.kind in "BI" and self.stage + 1 < stages else None


class Transfer:
    """An activation (F) or a gradient (B); `micro_batch` is that of the op which made it."""

    def __init__(self, kind, source, target, micro_batch, begin, end):
        self.kind, self.source, self.target, self.micro_batch = kind, source, target, micro_batch  # source: a stage
        self.begin, self.end = begin, end
        self.posted = None  # when the receiver's kernel begins


class Step:
    """One iteration of one rank."""

    def __init__(self, ready, ops):
        self.ready, self.ops = ready, ops
        self.sends, self.reduce, self.optimizer, self.idle, self.kernels_ns = [], None, None, {}, None

    def sent_by(self, op):
        kind = "F" if op.kind == "F" else "B" if op.kind in "BI" else None
        return next((t for t in self.sends if (t.kind, t.micro_batch) == (kind, op.micro_batch)), None)


class Dice:
    """Draws of durations, in whole nanoseconds or, where the form knows no less, whole microseconds."""

    def __init__(self, seed, jitter, grain):
        self.random, self.jitter, self.grain = random.Random(seed), jitter, grain

    def whole(self, ns):
        return round(ns / self.grain) * self.grain

    def about(self, ns):
        return self.whole(ns * (1 + self.jitter * self.random.uniform(-1, 1)))

    def up_to(self, ns):
        return int(self.random.uniform(0, ns)) // self.grain * self.grain


def lateness(o, dice):
    """Of the host. Where the ops run on the CPU, the calls that send and receive take time on the same thread."""
    return dice.up_to(o.host_late * MICROSECOND) + (0 if o.form == "gpu" else 8 * MICROSECOND)


def order(schedule, stages, micro_batches, stage):
    """The ops of a stage: [(kind, micro-batch)]. `zb` is 1F1B in which W runs `stage` micro-batches after its I."""
    forwards = [("F", m) for m in range(micro_batches)]
    if schedule == "gpipe":
        return forwards + [("B", m) for m in range(micro_batches)]
    warm_up = min(micro_batches, stages - stage - 1)
    ops = forwards[:warm_up]
    for m in range(micro_batches):
        ops += forwards[warm_up + m:warm_up + m + 1]
        if schedule == "1f1b":
            ops.append(("B", m))
        else:
            ops.append(("I", m))
            ops += [("W", m - stage)] if m >= stage else []
    if schedule == "zb":
        ops += [("W", m) for m in range(max(0, micro_batches - stage), micro_batches)]
    return ops


def simulate(o, dice):
    """Each iteration's steps, one a rank. The rank of a stage's replica is stage * replicas + replica."""
    times = []
    for _ in range(o.stages):
        f = 1000 * MICROSECOND * dice.random.uniform(0.8, 1.2)
        times.append({"F": f, "B": 2 * f, "I": 1.1 * f, "W": 0.9 * f})
    slower, factor = o.straggler
    ranks = range(o.stages * o.replicas)
    ready = [10_000 * MICROSECOND + dice.up_to(50 * MICROSECOND) for _ in ranks]
    iterations = []
    for _ in range(o.iterations):
        steps = [Step(ready[r], [Op(kind, r // o.replicas, m) for kind, m in
                                 order(o.schedule, o.stages, o.micro_batches, r // o.replicas)]) for r in ranks]
        run_ops(o, dice, steps, times, slower, factor)
        reduce_and_update(o, dice, steps)
        account(steps)
        iterations.append(steps)
        ready = [max(s.optimizer[1] for s in steps) + BETWEEN_ITERATIONS + dice.up_to(50 * MICROSECOND) for _ in ranks]
    return iterations


def run_ops(o, dice, steps, times, slower, factor):
    free = [step.ready for step in steps]  # when a rank's op before has ended
    done = [0] * len(steps)
    link_free, incoming = {}, {}
    moved = True
    while moved:
        moved = False
        for rank, step in enumerate(steps):
            while done[rank] < len(step.ops):
                op = step.ops[done[rank]]
                needed = op.receives(o.stages)
                if needed and (rank, needed, op.micro_batch) not in incoming:
                    break
                earliest = free[rank]
                if needed:
                    op.transfer, op.produced = incoming[rank, needed, op.micro_batch]
                    earliest = max(earliest, op.transfer.end)
                op.late = lateness(o, dice)
                op.begin = earliest + op.late
                op.end = op.begin + dice.about(times[op.stage][op.kind] * (factor if rank == slower else 1))
                free[rank] = op.end
                sends = op.sends(o.stages)
                if sends:
                    kind, target = sends
                    other = rank + (target - op.stage) * o.replicas
                    begin = max(op.end, link_free.get((rank, other), 0))
                    transfer = Transfer(kind, op.stage, target, op.micro_batch, begin,
                                        begin + LATENCY + dice.about(WIRE_TIME))
                    link_free[rank, other] = transfer.end
                    incoming[other, kind, op.micro_batch] = transfer, op.end
                    step.sends.append(transfer)
                done[rank] += 1
                moved = True
    assert all(n == len(step.ops) for n, step in zip(done, steps)), "the schedule cannot run"


def reduce_and_update(o, dice, steps):
    free = [step.ops[-1].end for step in steps]
    if o.replicas > 1:
        begins = [t + lateness(o, dice) for t in free]
        for first in range(0, len(steps), o.replicas):
            group = range(first, first + o.replicas)
            end = max(begins[r] for r in group) + dice.about(REDUCE_TIME)
            for r in group:
                steps[r].reduce = begins[r], end
                free[r] = end
    for step, t in zip(steps, free):
        begin = t + lateness(o, dice)
        step.optimizer = begin, begin + dice.about(OPTIMIZER_TIME)


def account(steps):
    """The idle time of each step, by cause."""
    begin = min(step.ops[0].begin for step in steps)
    end = max(step.optimizer[1] for step in steps)
    for step in steps:
        idle = dict.fromkeys(("fill", "dependency", "transfer", "overhead", "drain"), 0)
        idle["fill"] = step.ops[0].begin - begin
        for before, op in zip(step.ops, step.ops[1:]):
            made = arrived = before.end
            if op.transfer:
                made = max(before.end, op.produced)
                arrived = max(before.end, op.transfer.end)
            idle["dependency"] += made - before.end
            idle["transfer"] += arrived - made
            idle["overhead"] += op.begin - arrived
        idle["overhead"] += step.optimizer[0] - step.ops[-1].end
        idle["drain"] = end - step.optimizer[1]
        busy = sum(op.end - op.begin for op in step.ops) + step.optimizer[1] - step.optimizer[0]
        assert busy + sum(idle.values()) == end - begin and min(idle.values()) >= 0
        step.idle = idle


# What the profiler writes of it.

class Clock:
    """A rank's clock. `base`: what its file counts from."""

    def __init__(self, epoch, offset, drift_ppb, base):
        self.epoch, self.offset, self.drift_ppb, self.base = epoch, offset, drift_ppb, base

    def __call__(self, t):
        return self.epoch + t + self.offset + t * self.drift_ppb // 10**9 - self.base


class Recording:
    """The events of one rank, in true time: dicts as they are written, but with "begin" and "end" in ns."""

    def __init__(self, o, rank, dice):
        self.o, self.rank, self.dice = o, rank, dice
        self.events, self.ids = [], 0
        self.pid = 4000 + rank
        self.main, self.autograd, self.loader = self.pid, self.pid + 300, self.pid + 500
        self.device = rank % 8

    def id(self):
        self.ids += 1
        return self.ids

    def noise(self, ns):
        """Up to so much, to the nanosecond."""
        return int(self.dice.random.uniform(0, ns))

    def add(self, cat, name, tid, begin, end, pid=None, ph="X", args=None, **more):
        assert end is None or begin <= end, (name, begin, end)
        self.events.append({"ph": ph, "cat": cat, "name": name, "pid": self.pid if pid is None else pid, "tid": tid,
                            "begin": begin, "end": end, "args": args or {}, **more})

    def cpu_op(self, name, tid, begin, end, **args):
        self.add("cpu_op", name, tid, begin, end, args={"External id": self.id(), "Record function id": 0, **args})

    def annotate(self, name, begin, end):
        if name:
            self.add("user_annotation", name, self.main, begin, end, args={"External id": self.id()})

    def kernel(self, name, stream, begin, end, launch, tid, runtime="cudaLaunchKernel", cat="kernel", **args):
        """A kernel and its launch, which takes `launch`."""
        assert launch[1] <= begin, f"rank {self.rank}: {name} at {begin} is launched at {launch[1]}"
        parent, correlation = self.ids, self.id()
        self.add("cuda_runtime", runtime, tid, *launch, args={"External id": parent, "cbid": 211,
                                                              "correlation": correlation})
        self.add(cat, name, stream, begin, end, pid=self.device, args={
            "External id": parent, "queued": 0, "device": self.device, "context": 1, "stream": stream,
            "correlation": correlation, "grid": [132, 1, 1], "block": [256, 1, 1], **args})
        if self.o.other_threads:
            flow = {"id": correlation, "cat": "ac2g", "name": "ac2g", "end": None}
            self.add(tid=tid, ph="s", begin=launch[0], **flow)
            self.add(tid=stream, ph="f", begin=begin, pid=self.device, bp="e", **flow)

    def pieces(self, begin, end):
        """Three to six parts of this time with short gaps between: from `begin` to `end`."""
        weights = [self.dice.random.uniform(0.5, 1.5) for _ in range(self.dice.random.randint(3, 6))]
        cuts = [begin]
        for w in weights:
            cuts.append(cuts[-1] + int((end - begin) * w / sum(weights)))
        cuts[-1] = end
        return [(a, b if b == end else b - 500 - self.noise(1500)) for a, b in zip(cuts, cuts[1:])]

    def range_name(self, op):
        if self.o.names == "pytorch":
            return f"PP:{op.stage}{op.kind}{op.micro_batch}"
        return f"{'Forward' if op.kind == 'F' else 'Backward'} {op.micro_batch}" if self.o.names == "classic" else None


class GpuRecording(Recording):
    """A main thread launches, ahead of the GPU; backwards are launched by the autograd thread."""

    def record(self, steps):
        self.now = steps[0].ready - 5000 * MICROSECOND  # where the main thread is
        for n, step in enumerate(steps):
            self.post(step)
            step.kernels_ns = 0
            begin = self.now
            for _, _, act, *what in sorted(self.acts(step), key=lambda a: a[:2]):
                act(step, *what)
            if not self.o.no_step:
                self.annotate(f"ProfilerStep#{n + 2}", begin, self.now)
            self.now += self.noise(MICROSECOND)

    def post(self, step):
        """The receiver posts after its op before began, but not before the last message of this stream has come."""
        last = dict.fromkeys("FB", step.ready)
        for before, op in zip([None] + step.ops, step.ops):
            t = op.transfer
            if t:
                since = before.begin if before else step.ready
                low = max(last[t.kind], min(since, t.begin))
                t.posted = low + int((t.end - low) * self.dice.random.uniform(0, 0.9))
                last[t.kind] = t.end

    def acts(self, step):
        """What the main thread does: (when it is needed, rank among equals, method, arguments)."""
        for op in step.ops:
            yield op.begin, 2, self.run, op
            if op.transfer and not self.o.no_pairs:
                yield op.transfer.posted - 200 * MICROSECOND, 1, self.message, "recv", op
        if step.reduce:
            yield step.reduce[0], 3, self.reduce
        yield step.optimizer[0], 4, self.update

    def wait(self, deadline, late=0):
        """Goes on to a time before the deadline: some 100 us, or a few us where the host is late."""
        ahead = 30 * MICROSECOND if late > 10 * MICROSECOND else 400 * MICROSECOND + self.noise(2000 * MICROSECOND)
        self.now = max(self.now, deadline - ahead) + self.noise(MICROSECOND)

    def run(self, step, op):
        self.wait(op.begin, op.late)
        begin = self.now
        self.now += 4 * MICROSECOND
        if op.transfer:
            self.add("cuda_runtime", "cudaStreamWaitEvent", self.main, self.now, self.now + 1 * MICROSECOND,
                     args={"External id": self.ids, "cbid": 147, "correlation": self.id()})
            self.now += 2 * MICROSECOND
        parts = self.pieces(op.begin, op.end)
        begins_backward = op.stage + 1 == self.o.stages and op.kind in "BI"
        if begins_backward:  # loss.backward() itself launches one small kernel
            (a, b), *others = parts
            parts = [(a, a + 2 * MICROSECOND), (a + 2 * MICROSECOND + 500, b), *others]
        step.kernels_ns += sum(b - a for a, b in parts)
        own = []  # the kernels that the range's own thread launched
        for i, part in enumerate(parts):
            name = KERNELS["F" if op.kind == "F" else "B"][i % 2]
            if op.kind == "F" or (i == 0 and begins_backward):
                self.launch_here(name, part, "aten::linear" if op.kind == "F" else "aten::ones_like")
                own.append(part)
            else:
                self.launch_in_autograd(name, part)
        self.now += 3 * MICROSECOND
        name = self.range_name(op)
        self.annotate(name, begin, self.now)
        if name and own:
            self.add("gpu_user_annotation", name, STREAM_COMPUTE, own[0][0] - 1, own[-1][1] + 1, pid=self.device,
                     args={"External id": self.ids})
        if op.sends(self.o.stages) and not self.o.no_pairs:
            self.message(step, "send", op)

    def launch_here(self, name, part, parent):
        t = self.now
        self.cpu_op(parent, self.main, t, t + 9 * MICROSECOND)
        self.kernel(name, STREAM_COMPUTE, *part, (t + 2 * MICROSECOND, t + 6 * MICROSECOND), self.main)
        self.now += 10 * MICROSECOND + self.noise(MICROSECOND)

    def launch_in_autograd(self, name, part):
        t, us = self.now, MICROSECOND
        self.cpu_op("autograd::engine::evaluate_function: AddmmBackward0", self.autograd, t, t + 14 * us)
        self.cpu_op("AddmmBackward0", self.autograd, t + 1 * us, t + 13 * us)
        self.cpu_op("aten::mm", self.autograd, t + 2 * us, t + 12 * us)
        self.kernel(name, STREAM_COMPUTE, *part, (t + 4 * us, t + 8 * us), self.autograd)
        self.now += 15 * us + self.noise(us)

    def message(self, step, which, op):
        """A send or a receive. Kineto writes the peer's rank only: "Dst Rank" of a send, "Src Rank" of a receive."""
        t = step.sent_by(op) if which == "send" else op.transfer
        begin = t.begin if which == "send" else t.posted
        if which == "recv":
            self.wait(begin)
        other = t.target if which == "send" else t.source
        peer = other * self.o.replicas + self.rank % self.o.replicas
        what = {"Collective name": which, "In msg nelems": ELEMENTS, "Out msg nelems": ELEMENTS,
                "Group size": self.o.world, "dtype": "BFloat16", "Process Group Name": "0",
                "Process Group Description": "default_pg", "Process Group Ranks": str(list(range(self.o.world))),
                "Dst Rank" if which == "send" else "Src Rank": peer}
        now, us = self.now, MICROSECOND
        self.cpu_op("c10d::send" if which == "send" else "c10d::recv_", self.main, now + 1 * us, now + 20 * us)
        if not self.o.old_nccl:
            self.cpu_op("record_param_comms", self.main, now + 3 * us, now + 17 * us, **what)
        stream = STREAMS[which, t.kind]
        self.kernel(SEND_RECV[self.o.old_nccl], stream, begin, t.end, (now + 8 * us, now + 13 * us), self.main,
                    "cudaLaunchKernelExC", **({} if self.o.old_nccl else what))
        if self.o.names == "pytorch":
            name = f"PP:{op.stage}{which.upper()}_{t.kind}{op.micro_batch}"
            self.annotate(name, now, now + 22 * us)
            self.add("gpu_user_annotation", name, stream, begin - 1, t.end + 1, pid=self.device,
                     args={"External id": self.ids})
        self.now += 23 * us + self.noise(us)

    def reduce(self, step):
        self.wait(step.reduce[0])
        t, us = self.now, MICROSECOND
        self.cpu_op("c10d::allreduce_", self.main, t, t + 20 * us)
        stage = self.rank // self.o.replicas
        group = list(range(stage * self.o.replicas, (stage + 1) * self.o.replicas))
        self.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", STREAM_REDUCE,
                    *step.reduce, (t + 8 * us, t + 13 * us), self.main, "cudaLaunchKernelExC",
                    **({} if self.o.old_nccl else {
                        "Collective name": "allreduce", "In msg nelems": ELEMENTS, "Out msg nelems": ELEMENTS,
                        "Group size": self.o.replicas, "dtype": "BFloat16", "Process Group Name": "1",
                        "Process Group Description": "mesh_dp", "Process Group Ranks": str(group)}))
        self.now += 21 * us

    def update(self, step):
        self.wait(step.optimizer[0])
        begin = self.now
        self.now += 5 * MICROSECOND
        for part in self.pieces(*step.optimizer):
            self.launch_here(ADAM, part, "aten::_fused_adamw_")
        self.annotate("Optimizer.step#AdamW.step", begin, self.now)
        self.annotate("Optimizer.zero_grad#AdamW.zero_grad", self.now + 1 * MICROSECOND, self.now + 6 * MICROSECOND)
        self.now += 8 * MICROSECOND

    def others(self, begin, end):
        """A loader's copies and kernels on a stream of its own, Python frames, counters."""
        t, us = begin, MICROSECOND
        while t < end - 1000 * us:
            self.cpu_op("aten::to", self.loader, t, t + 60 * us)
            self.kernel("Memcpy HtoD (Pinned -> Device)", STREAM_LOADER, t + 20 * us, t + 90 * us,
                        (t + 5 * us, t + 10 * us), self.loader, "cudaMemcpyAsync", "gpu_memcpy", bytes=1 << 20)
            self.kernel("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>(int)",
                        STREAM_LOADER, t + 100 * us, t + 350 * us, (t + 30 * us, t + 40 * us), self.loader)
            self.add("gpu_counter", "GPU utilization", 0, t, None, pid=self.device, ph="C", args={"percent": 97})
            t += 700 * us + self.noise(300 * us)
        other_events(self, begin, end)


class CpuRecording(Recording):
    """Ops on one thread of the CPU. A range begins when its thread comes to it, and contains the wait for the input."""

    def record(self, steps):
        for n, step in enumerate(steps):
            begin = step.ready - 2 * MICROSECOND
            end = (steps[n + 1].ready if n + 1 < len(steps) else step.optimizer[1] + 40 * MICROSECOND) - 3 * MICROSECOND
            if not self.o.no_step:
                self.annotate(f"ProfilerStep#{n + 2}", begin, end)
            now = step.ready
            begins = [op.begin for op in step.ops[1:]] + [(step.reduce or step.optimizer)[0]]
            for op, following in zip(step.ops, begins):
                now = self.run(step, op, now, following)
            if step.reduce:
                launched = min(step.reduce[0] + 20 * MICROSECOND, step.reduce[1])
                self.cpu_op("c10d::allreduce_", self.main, step.reduce[0], launched)
                self.annotate("gloo:all_reduce", launched, step.reduce[1])
            self.annotate("Optimizer.step#AdamW.step", *step.optimizer)
            for part in self.pieces(*step.optimizer):
                self.cpu_op("aten::addcdiv_", self.main, *part)
            t = step.optimizer[1]
            self.annotate("Optimizer.zero_grad#AdamW.zero_grad", t + 2 * MICROSECOND, t + 9 * MICROSECOND)

    def run(self, step, op, now, following):
        """One op; the thread is free from `now` on, and needed by `following`. Returns when it is free again."""
        begin, us = op.begin, MICROSECOND
        if op.transfer:
            gap = op.begin - now
            if self.o.form == "legacy" and gap > 60 * us:  # the handle of a range is a tensor in PyTorch 1.13
                self.cpu_op("aten::zeros", self.main, now + 5 * us, now + 9 * us)
                self.cpu_op("aten::empty", self.main, now + 6 * us, now + 7 * us)
                self.cpu_op("aten::zero_", self.main, now + 8 * us, now + 8 * us)
                self.cpu_op("aten::empty", self.main, now + 12 * us, now + 12 * us)
                self.cpu_op("aten::zeros", self.main, now + 14 * us, now + 17 * us)  # the buffer
                begin, called = now + 12 * us, now + 20 * us
            else:
                begin = now + min(gap // 4, 4 * us)
                called = begin + min(gap // 4, 2 * us)
            if not self.o.no_pairs:
                returned = called + min((op.begin - called) // 2, 20 * us)
                self.cpu_op("c10d::recv_", self.main, called, returned)
                soonest = returned + min((op.begin - returned) // 2, 2 * us)
                self.annotate("gloo:recv", returned, max(soonest, op.transfer.end))
        elif self.o.form == "cpu":
            begin -= min((op.begin - now) // 2, 3 * us)
        else:
            self.cpu_op("aten::empty", self.main, begin, begin)
        for i, (a, b) in enumerate(self.pieces(op.begin, op.end)):
            if op.kind == "F":
                self.cpu_op("aten::linear", self.main, a, b)
                self.cpu_op("aten::addmm", self.main, a + 4 * us, b - 1 * us)
                continue
            if i == 0:
                self.cpu_op("aten::is_same_size", self.main, a, a + 1 * us)
                a += min((b - a) // 2, 30 * us)
            self.cpu_op("autograd::engine::evaluate_function: AddmmBackward0", self.main, a, b)
            self.cpu_op("AddmmBackward0", self.main, a + 1 * us, b - 1 * us)
            self.cpu_op("aten::mm", self.main, a + 5 * us, b - 2 * us)
        end = op.end
        sent = step.sent_by(op)
        if sent and not self.o.no_pairs:
            end += min((following - op.end) // 2, 15 * us)
            self.cpu_op("c10d::send", self.main, op.end, end)
            self.annotate("gloo:send", end, sent.end)  # until the message has gone: not nested in the range
        self.annotate(self.range_name(op), begin, end)
        return end

    def others(self, begin, end):
        t, us = begin, MICROSECOND
        while t < end - 1000 * us:
            self.cpu_op("aten::stack", self.loader, t, t + 200 * us)
            self.cpu_op("aten::cat", self.loader, t + 10 * us, t + 190 * us)
            t += 700 * us + self.noise(300 * us)
        if self.o.form == "cpu":
            other_events(self, begin, end)


def other_events(recording, begin, end):
    """What traces hold besides: Python frames, counters, instants, names of threads."""
    r, us = recording, MICROSECOND
    r.add("python_function", "train.py(12): main", r.main, begin, end, args={"Python id": 1, "Python parent id": None})
    r.add("python_function", "train.py(42): train_step", r.main, begin + 5 * us, end - 5 * us,
          args={"Python id": 2, "Python parent id": 1})
    for t in range(begin, end, 2000 * us):
        r.add("cpu_counter", "resident memory", 0, t, None, ph="C", args={"bytes": 3 << 30})
        r.add("cpu_instant_event", "[memory]", r.main, t + us, None, ph="i", s="t", args={
            "Total Allocated": 1 << 30, "Device Type": 0, "Bytes": -4096})
    for tid, name in ((r.main, "python"), (r.autograd, "pt_autograd_0"), (r.loader, "pt_data_pin")):
        r.add(None, "thread_name", tid, begin, None, ph="M", args={"name": f"thread {tid} ({name})"})
    r.add(None, "process_name", 0, begin, None, ph="M", args={"name": "python3"})
    r.add(None, "process_labels", 0, begin, None, ph="M", pid=r.device, args={"labels": f"GPU {r.device}"})


# The files.

def microseconds(ns):
    """Decimals, not a double: these have 19 digits."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def event_text(e, clock):
    fields = [f'"ph": "{e["ph"]}"'] + ([f'"cat": "{e["cat"]}"'] if e["cat"] else [])
    fields += [f'"{key}": {json.dumps(e[key])}' for key in ("name", "pid", "tid", "id", "bp", "s") if key in e]
    fields.append(f'"ts": {microseconds(clock(e["begin"]))}')
    if e["end"] is not None:
        fields.append(f'"dur": {microseconds(clock(e["end"]) - clock(e["begin"]))}')
    if e["args"]:
        fields.append(f'"args": {json.dumps(e["args"])}')
    return "{" + ", ".join(fields) + "}"


def kineto_text(o, r, clock, file):
    """The categories one after another, in any order; within one, thread by thread."""
    begin = min(e["begin"] for e in r.events)
    r.add("Trace", "PyTorch Profiler (0)", "PyTorch Profiler", begin, max(e["end"] or 0 for e in r.events), pid="Spans",
          args={"Op count": 0})
    categories = sorted({e["cat"] or "" for e in r.events})
    r.dice.random.shuffle(categories)
    events = sorted(r.events, key=lambda e: (categories.index(e["cat"] or ""), str(e["tid"])))
    r.add("", "Record Window End", "", max(e["end"] or 0 for e in r.events), None, pid="", ph="i", s="g")
    events.append(r.events[-1])
    gpu = o.form == "gpu"
    device = {"id": r.device, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84_942_979_072, "computeMajor": 9,
              "computeMinor": 0, "numSms": 132}
    world = {"backend": "nccl" if gpu else "gloo", "rank": r.rank, "world_size": o.world, "pg_count": 1, "pg_config": [
        {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl" if gpu else "cpu:gloo",
         "pg_size": o.world, "ranks": list(range(o.world))}]}
    head = {"schemaVersion": 1, "deviceProperties": [device] if gpu else [], "distributedInfo": world,
            "displayTimeUnit": "ms"}
    if o.base_time:
        head["baseTimeNanoseconds"] = clock.base
    lines = ",\n".join(event_text(e, clock) for e in events)
    return json.dumps(head)[:-1] + f', "traceEvents": [\n{lines}\n], "traceName": {json.dumps(file)}}}\n'


def legacy_text(r, clock):
    """The list of PyTorch 1.13: whole microseconds, one thread, no categories."""
    def text(e):
        begin, end = (clock(e[key]) // 1000 for key in ("begin", "end"))
        return json.dumps({"name": e["name"], "ph": "X", "ts": begin, "dur": end - begin,
                           "tid": 2 if e["tid"] == r.loader else 1, "pid": "CPU functions", "args": {}})
    return "[" + ", ".join(text(e) for e in sorted(r.events, key=lambda e: (e["begin"], -e["end"]))) + "]"


def truth(o, iterations, clocks, files):
    def step_truth(n, step):
        found = {"step": n + 2,
                 "ops": [[op.kind, op.stage, op.micro_batch, op.begin, op.end] for op in step.ops],
                 "transfers": [[t.kind, t.source, t.target, t.micro_batch, t.begin, t.end] for t in step.sends],
                 "all_reduce": step.reduce, "optimizer": step.optimizer, "idle_ns": step.idle}
        return found if step.kernels_ns is None else {**found, "kernels_ns": step.kernels_ns}

    whole = []
    for steps in iterations:
        begin, end = min(s.ops[0].begin for s in steps), max(s.optimizer[1] for s in steps)
        busy = sum(op.end - op.begin for s in steps for op in s.ops)
        whole.append({"begin_ns": begin, "end_ns": end, "bubble_fraction": 1 - busy / (len(steps) * (end - begin))})
    options = {key: value for key, value in vars(o).items() if key != "out"}
    ranks = [{"rank": r, "stage": r // o.replicas, "replica": r % o.replicas, "file": files[r],
              "clock_offset_ns": clocks[r].offset, "drift_ppb": clocks[r].drift_ppb,
              "iterations": [step_truth(n, steps[r]) for n, steps in enumerate(iterations)]} for r in range(o.world)]
    return {"options": options, "epoch_ns": EPOCH[o.form], "iterations": whole, "ranks": ranks}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("out", metavar="OUT_FOLDER")
    add("--stages", type=int, default=4, metavar="P")
    add("--micro-batches", type=int, default=8, metavar="M")
    add("--schedule", choices=("gpipe", "1f1b", "zb"), default="1f1b")
    add("--iterations", type=int, default=2, metavar="N")
    add("--form", choices=("gpu", "cpu", "legacy"), default="gpu")
    add("--names", choices=("pytorch", "classic", "none"), default="pytorch", help="PP:0F1, Forward 1, or no ranges")
    add("--seed", type=int, default=1)
    add("--jitter", type=float, default=0.05, metavar="SHARE", help="durations differ by up to so much (0.05)")
    add("--host-late", type=float, default=2, metavar="US", help="ops begin up to so much late (2)")
    add("--straggler", default="-1:1", metavar="RANK:FACTOR", help="the ops of this rank take so much longer")
    add("--replicas", type=int, default=1, metavar="R")
    add("--skew", type=float, default=0, metavar="US", help="clocks are off by up to so much, either way")
    add("--drift", type=float, default=0, metavar="PPM", help="clocks run fast by up to so much")
    add("--base-time", action="store_true", help="ts count from baseTimeNanoseconds, another in each file")
    add("--no-pairs", action="store_true", help="sends and receives are not in the traces")
    add("--old-nccl", action="store_true", help="nothing says which of the kernels send and which receive")
    add("--no-step", action="store_true", help="no ProfilerStep ranges")
    add("--other-threads", action="store_true", help="a data loader, Python frames, counters, flows")
    add("--gz", action="store_true", help="writes rank0.json.gz ...")
    o = parser.parse_args()
    if min(o.stages, o.micro_batches, o.iterations, o.replicas) < 1 or not 0 <= o.jitter <= 0.5:
        parser.error("stages, micro-batches, iterations and replicas are at least 1; jitter is from 0 to 0.5")
    if o.schedule == "zb" and o.names == "classic":
        parser.error("classic names know no I and W")
    try:
        rank, factor = o.straggler.split(":")
        o.straggler = int(rank), float(factor)
    except ValueError:
        parser.error("a straggler is a rank and a factor, such as 2:1.5")
    if o.straggler[1] < 0.5:
        parser.error("a straggler's factor is at least 0.5, or its launches would not be ahead")
    o.world = o.stages * o.replicas
    return o


def main():
    o = arguments()
    grain = MICROSECOND if o.form == "legacy" else 1
    iterations = simulate(o, Dice(o.seed, o.jitter, grain))
    os.makedirs(o.out, exist_ok=True)
    clocks, files = [], []
    for rank in range(o.world):
        dice = Dice(f"{o.seed}/{rank}", o.jitter, grain)
        offset = dice.whole(dice.random.uniform(-o.skew, o.skew) * MICROSECOND)
        drift = round(dice.random.uniform(0, o.drift) * 1000)
        base = EPOCH[o.form] - 10**9 - dice.random.randrange(10**9) if o.base_time and o.form != "legacy" else 0
        clock = Clock(EPOCH[o.form], offset, drift, base)
        recording = (GpuRecording if o.form == "gpu" else CpuRecording)(o, rank, dice)
        steps = [steps[rank] for steps in iterations]
        recording.record(steps)
        if o.other_threads:
            recording.others(min(e["begin"] for e in recording.events), max(e["end"] or 0 for e in recording.events))
        file = f"rank{rank}.json" + (".gz" if o.gz else "")
        text = legacy_text(recording, clock) if o.form == "legacy" else kineto_text(o, recording, clock, file)
        with (gzip.open if o.gz else open)(os.path.join(o.out, file), "wt", encoding="utf-8") as out:
            out.write(text)
        clocks.append(clock)
        files.append(file)
    with open(os.path.join(o.out, "truth.json"), "w", encoding="utf-8") as out:
        json.dump(truth(o, iterations, clocks, files), out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
