#!/usr/bin/env python3
# A pipeline run by PyTorch's own schedules, with a trace of each process. NOT RUN ON THIS MACHINE.
# SPDX-License-Identifier: MIT
"""Usage: torchrun --nproc-per-node 4 torch_pipelining.py --schedule Interleaved1F1B --out FOLDER

It was written from the source of torch.distributed.pipelining, and not run on the machine where it was written: that
one has PyTorch 1.13. It needs PyTorch 2.4 or newer, and 2.6 for ZBVZeroBubble. There must be as many micro-batches as
processes or more. With a GPU for each process it uses nccl, otherwise gloo on the CPU.

What a range PP:1F0 holds differs. Newer PyTorch itself names the ops of schedules with several stages on a process;
such a range also holds the wait for the message that the op needs. Where PyTorch makes no such ranges (GPipe and 1F1B,
older versions) this program does, and they hold the computation only.
"""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining
from torch.distributed.pipelining import schedules
from torch.profiler import ProfilerActivity, profile, record_function, schedule

STAGES_OF_RANK = {  # the stages of a rank, when there are so many ranks
    "GPipe": lambda rank, ranks: [rank],
    "1F1B": lambda rank, ranks: [rank],
    "Interleaved1F1B": lambda rank, ranks: [rank, rank + ranks],
    "ZBVZeroBubble": lambda rank, ranks: [rank, 2 * ranks - 1 - rank],  # the last stage is on the first rank
}


def names_its_ops(pipeline):
    runtime = getattr(schedules, "_PipelineScheduleRuntime", ())
    return hasattr(schedules, "_get_profiler_function_name") and isinstance(pipeline, runtime)


def name_ops(stage):
    """Puts ranges such as PP:1F0 around the forwards and backwards of a stage."""
    def named(kind, function):
        def run(micro_batch, *values, **options):
            its_kind = kind if options.get("full_backward", True) else "I"  # I: for the inputs only, W comes later
            with record_function(f"PP:{stage.stage_index}{its_kind}{micro_batch}"):
                return function(micro_batch, *values, **options)
        return run
    stage.forward_one_chunk = named("F", stage.forward_one_chunk)
    stage.backward_one_chunk = named("B", stage.backward_one_chunk)
    stage.backward_weight_one_chunk = named("W", stage.backward_weight_one_chunk)


def main():
    parser = argparse.ArgumentParser(description="A pipeline run by PyTorch's own schedules; start it by torchrun.")
    parser.add_argument("--schedule", choices=STAGES_OF_RANK, default="GPipe", help="absent = GPipe")
    parser.add_argument("--micro-batches", type=int, default=8, metavar="M", help="absent = 8")
    parser.add_argument("--steps", type=int, default=5, help="steps that are recorded; absent = 5")
    parser.add_argument("--warm-up", type=int, default=3, help="steps before them; absent = 3")
    parser.add_argument("--batch", type=int, default=256, help="samples of a mini-batch; absent = 256")
    parser.add_argument("--width", type=int, default=1024, help="numbers in each layer's output; absent = 1024")
    parser.add_argument("--layers", type=int, default=4, help="of each stage; absent = 4")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="for rank0.json and so on")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)

    torch.set_num_threads(1)
    local_rank, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
    on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank = dist.get_rank()

    indices = STAGES_OF_RANK[arguments.schedule](rank, ranks)
    count = ranks * len(indices)
    example = torch.empty(arguments.batch // arguments.micro_batches, arguments.width, device=device)
    stages, parameters = [], []
    for index in indices:
        torch.manual_seed(index)
        layers = []
        for _ in range(arguments.layers):
            layers += [nn.Linear(arguments.width, arguments.width), nn.ReLU()]
        model = nn.Sequential(*layers).to(device)
        parameters += model.parameters()
        stages.append(pipelining.PipelineStage(model, index, count, device, input_args=(example,),
                                               output_args=(example.clone(),)))
    make_schedule = getattr(pipelining, "Schedule" + arguments.schedule)
    pipeline = make_schedule(stages[0] if len(stages) == 1 else stages, arguments.micro_batches,
                             loss_fn=nn.functional.mse_loss)
    if not names_its_ops(pipeline):
        for stage in stages:
            name_ops(stage)
    optimizer = torch.optim.SGD(parameters, lr=0.1)

    torch.manual_seed(1000)
    inputs, targets = (torch.rand(arguments.batch, arguments.width, device=device) for _ in range(2))
    given = [inputs] if 0 in indices else []
    losses = []
    wanted = {"target": targets, "losses": losses} if count - 1 in indices else {}
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu
    plan = schedule(wait=0, warmup=arguments.warm_up, active=arguments.steps, repeat=1)
    with profile(activities=activities, schedule=plan) as record:
        for step in range(arguments.warm_up + arguments.steps):
            optimizer.zero_grad()
            pipeline.step(*given, **wanted)
            optimizer.step()
            if wanted:
                print(f"step {step}: loss {torch.stack([loss.detach() for loss in losses]).mean().item():.6f}")
            record.step()
    record.export_chrome_trace(os.path.join(arguments.out, f"rank{rank}.json"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
