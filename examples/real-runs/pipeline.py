#!/usr/bin/env python3
# A pipeline of processes on the CPU: option A, GPipe, 1F1B or option C, with a trace of each process.
# SPDX-License-Identifier: MIT
"""Usage: pipeline.py --stages 2 --micro-batches 4 --schedule gpipe --out FOLDER; README.md beside it tells more.

Each process holds one stage of a network of linear layers and ReLUs, and computes on one thread. Activations and
gradients go to the neighbours by torch.distributed (gloo, on this machine). PyTorch's profiler records the last steps.
Its ranges have the names of torch.distributed.pipelining: PP:1F0 is stage 1, forward, micro-batch 0.
"""
import argparse
import os
import random
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

TAGS = {"F": 0, "B": 1}  # an activation and a gradient of one micro-batch must not be mixed up

# How many forwards a stage runs before its first pair "forward, backward".
FORWARDS_AHEAD = {
    "naive": lambda stage, stages, m: 0,                     # option A: one micro-batch after the other
    "gpipe": lambda stage, stages, m: m,                     # option B: all forwards, then all backwards
    "1f1b": lambda stage, stages, m: stages - 1 - stage,     # as many as there are stages behind it
    "option-c": lambda stage, stages, m: 1,                  # forward of i, then backward of i - 1, on all stages
}


def order_of(schedule_name, stage, stages, m):
    """The forwards and backwards of one stage, for m micro-batches."""
    ahead = min(m, FORWARDS_AHEAD[schedule_name](stage, stages, m))
    order = [("F", i) for i in range(ahead)]
    for i in range(ahead, m):
        order += [("F", i), ("B", i - ahead)]
    return order + [("B", i) for i in range(m - ahead, m)]


def step_ops(order, stage, stages, replicas):
    """The ops of a step on one rank: its forwards and backwards, and the communication that they need."""
    ops = []
    for kind, i in order:
        has_source = stage > 0 if kind == "F" else stage + 1 < stages
        has_target = stage + 1 < stages if kind == "F" else stage > 0
        ops += [(f"RECV_{kind}", i)] * has_source + [(kind, i)] + [(f"SEND_{kind}", i)] * has_target
    return ops + [("WAIT_SENDS", "")] * (stages > 1) + [("REDUCE_GRAD", "")] * (replicas > 1)


def make_stage(stage, arguments):
    """The layers of a stage. Its weights depend on the seed and on the stage, not on the process that makes them."""
    torch.manual_seed(arguments.seed + stage)
    layers = []
    for _ in range(arguments.layers[stage]):
        layers += [nn.Linear(arguments.width, arguments.width), nn.ReLU()]
        nn.init.kaiming_normal_(layers[-2].weight, nonlinearity="relu")
    is_last = stage + 1 == arguments.stages
    return nn.Sequential(*(layers[:-1] if is_last else layers))  # the result of the network may be negative


def make_batch(arguments):
    """Inputs and targets of the mini-batch. Each step takes the same one."""
    torch.manual_seed(arguments.seed - 1)
    inputs = torch.randn(arguments.batch, arguments.width)
    return inputs, torch.randn(arguments.batch, arguments.width)


class Rank:
    """One process: a stage, what is in flight on it, and a method for each kind of op."""

    def __init__(self, rank, arguments):
        self.arguments, self.rank = arguments, rank
        self.stage, copy = divmod(rank, arguments.replicas)
        self.model = make_stage(self.stage, arguments)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=arguments.rate)
        parts = [part.chunk(arguments.replicas)[copy].chunk(arguments.micro_batches) for part in make_batch(arguments)]
        self.inputs, self.targets = parts  # only the first stage uses inputs, only the last one targets
        self.is_first, self.is_last = self.stage == 0, self.stage + 1 == arguments.stages
        self.shape = self.inputs[0].shape
        order = order_of(arguments.schedule, self.stage, arguments.stages, arguments.micro_batches)
        self.ops = step_ops(order, self.stage, arguments.stages, arguments.replicas)
        self.jitter = random.Random(arguments.seed + rank) if arguments.jitter else None
        self.received, self.kept, self.gradients, self.sends = {}, {}, {}, []
        copies = range(arguments.replicas)  # all processes make all groups: PyTorch asks for it
        groups = [dist.new_group([s * len(copies) + c for c in copies]) for s in range(arguments.stages)]
        self.group = groups[self.stage]  # the copies of this stage

    def forward(self, i):
        inputs = self.inputs[i] if self.is_first else self.received.pop(("F", i)).requires_grad_()
        self.kept[i] = inputs, self.model(inputs)

    def backward(self, i):
        """The loss of the last stage is part of its backward."""
        inputs, outputs = self.kept.pop(i)
        if self.is_last:  # the losses of all micro-batches add up to the mean of the mini-batch
            loss = nn.functional.mse_loss(outputs, self.targets[i]) / self.arguments.micro_batches
            self.loss += loss.item()
            loss.backward()
        else:
            outputs.backward(self.received.pop(("B", i)))
        self.gradients[i] = inputs.grad  # on the first stage: none

    def receive(self, kind, i):
        """The process waits here until all of the message has arrived."""
        self.received[kind, i] = torch.empty(self.shape)
        source = self.rank + self.arguments.replicas * (-1 if kind == "F" else 1)
        dist.recv(self.received[kind, i], source, tag=2 * i + TAGS[kind])

    def send(self, kind, i):
        """The send goes on in the background. Its tensor must stay until wait_sends."""
        tensor = self.kept[i][1].detach() if kind == "F" else self.gradients.pop(i)
        target = self.rank + self.arguments.replicas * (1 if kind == "F" else -1)
        self.sends.append((dist.isend(tensor, target, tag=2 * i + TAGS[kind]), tensor))

    def wait_sends(self):
        for work, _ in self.sends:
            work.wait()
        self.sends.clear()

    def reduce_gradients(self):
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad, group=self.group)
            parameter.grad /= self.arguments.replicas

    def run(self, kind, i):
        if kind in ("F", "B"):
            start = time.perf_counter()
            (self.forward if kind == "F" else self.backward)(i)
            if self.jitter:
                time.sleep(self.jitter.uniform(0, 0.5) * (time.perf_counter() - start))
        elif kind in ("WAIT_SENDS", "REDUCE_GRAD"):
            (self.wait_sends if kind == "WAIT_SENDS" else self.reduce_gradients)()
        else:  # RECV_F, RECV_B, SEND_F or SEND_B
            (self.receive if kind.startswith("RECV") else self.send)(kind[-1], i)

    def step(self):
        """One training step. The result is its time in seconds."""
        start = time.perf_counter()
        self.loss = 0.0
        self.optimizer.zero_grad(set_to_none=True)
        for kind, i in self.ops:
            with record_function(f"PP:{self.stage}{kind}{i}"):
                self.run(kind, i)
        self.optimizer.step()
        return time.perf_counter() - start

    def train(self):
        """All steps, and the trace of the last ones. The result is the time of each step and the losses."""
        times, losses = [], []
        plan = schedule(wait=0, warmup=self.arguments.warm_up, active=self.arguments.steps, repeat=1)
        dist.barrier()
        with profile(activities=[ProfilerActivity.CPU], schedule=plan) as record:
            for _ in range(self.arguments.warm_up + self.arguments.steps):
                times.append(self.step())
                losses.append(self.loss)
                record.step()  # it ends the range ProfilerStep#N, and starts the next one
        record.export_chrome_trace(os.path.join(self.arguments.out, f"rank{self.rank}.json"))
        return times, losses


def agrees_with_one_process(results, arguments):
    """Trains the whole model in this process, without micro-batches, and compares what the pipeline came to."""
    model = nn.Sequential(*(make_stage(stage, arguments) for stage in range(arguments.stages)))
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.rate)
    inputs, targets = make_batch(arguments)
    for _ in range(arguments.warm_up + arguments.steps):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    worst = 0.0
    for rank, (_, state) in enumerate(results):
        for name, parameter in model[rank // arguments.replicas].named_parameters():
            for mine, other in zip((parameter.detach(), parameter.grad), state[name]):
                worst = max(worst, float((mine - other).norm() / mine.norm()))
    print(f"one process: loss {loss.item():.7f}; weights and gradients differ by {worst:.1e} of their size at most")
    return worst < 1e-9


def work(rank, arguments, port):
    torch.set_num_threads(1)
    if arguments.check:  # rounding must not hide a difference, nor make one: it can switch a ReLU
        torch.set_default_dtype(torch.float64)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    world = arguments.stages * arguments.replicas
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    process = Rank(rank, arguments)
    times, losses = process.train()
    state = {name: (p.detach(), p.grad) for name, p in process.model.named_parameters()} if arguments.check else None
    results = [None] * world
    dist.all_gather_object(results, (losses, state))
    if rank == 0:
        of_last_stage = [losses for losses, _ in results[-arguments.replicas:]]
        losses = [sum(step) / arguments.replicas for step in zip(*of_last_stage)]
        median = statistics.median(times[arguments.warm_up:]) * 1e3
        print(f"{arguments.schedule}: median step {median:.2f} ms on rank 0, loss {losses[0]:.7f} -> {losses[-1]:.7f}")
        if len(losses) > 1 and not losses[-1] < losses[0]:
            sys.exit("the loss did not fall; a smaller --rate may help")
        if arguments.check and not agrees_with_one_process(results, arguments):
            sys.exit("the pipeline does not compute what one process does")
    dist.barrier()
    dist.destroy_process_group()


def number_list(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description="A pipeline of processes on the CPU, and a trace of each process.")
    parser.add_argument("--stages", type=int, default=2, help="absent = 2")
    parser.add_argument("--micro-batches", type=int, default=4, metavar="M", help="in each copy; absent = 4")
    parser.add_argument("--schedule", choices=FORWARDS_AHEAD, default="gpipe", help="absent = gpipe")
    parser.add_argument("--steps", type=int, default=5, help="steps that are recorded; absent = 5")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before them; absent = 2")
    parser.add_argument("--batch", type=int, default=256, help="samples of a mini-batch, of all copies; absent = 256")
    parser.add_argument("--width", type=int, default=1024, help="numbers in each layer's output; absent = 1024")
    parser.add_argument("--layers", type=number_list, default=[4], metavar="LIST",
                        help="per stage, or a list such as 4,2; absent = 4")
    parser.add_argument("--replicas", type=int, default=1, metavar="R", help="copies of the pipeline; absent = 1")
    parser.add_argument("--jitter", action="store_true", help="each op takes up to half as long again, at random")
    parser.add_argument("--seed", type=int, default=9, help="absent = 9")
    parser.add_argument("--rate", type=float, default=0.02, help="the learning rate; absent = 0.02")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="for rank0.json and so on")
    parser.add_argument("--check", action="store_true", help="compute in float64, and compare with one process")
    arguments = parser.parse_args()
    if len(arguments.layers) == 1:
        arguments.layers *= arguments.stages
    if len(arguments.layers) != arguments.stages or min(arguments.layers) < 1:
        parser.error("--layers needs one number, or one for each stage")
    if min(arguments.stages, arguments.micro_batches, arguments.replicas, arguments.steps) < 1:
        parser.error("--stages, --micro-batches, --replicas and --steps must be 1 or more")
    if arguments.batch % (arguments.micro_batches * arguments.replicas) != 0:
        parser.error("--batch must be a multiple of micro-batches x replicas")
    os.makedirs(arguments.out, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        torch.multiprocessing.spawn(work, (arguments, port), nprocs=arguments.stages * arguments.replicas)
    except torch.multiprocessing.ProcessExitedException:
        sys.exit(1)  # the process has said why


if __name__ == "__main__":
    main()
