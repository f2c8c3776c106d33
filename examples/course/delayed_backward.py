#!/usr/bin/env python3
# The practical's options A, B and C in PyTorch, on the CPU: what each launches, and that all make the same gradients.
# SPDX-License-Identifier: MIT
"""Usage: delayed_backward.py [--micro-batches M] [--without-condition]

Both stages are small and lie on the CPU, so that no GPU is needed. The order of the ops and the gradients are those of
two GPUs; the times are not, and none is shown. docs/course/practical-9.md explains what it prints.
"""
import argparse
import sys

import torch
from torch import nn

BATCH = 16  # samples of a mini-batch


class TrainingStep:
    """One mini-batch on two stages. It notes each op as it is launched, and how many micro-batches are in flight."""

    def __init__(self, micro_batches):
        torch.manual_seed(9)  # the same weights and samples for each option
        self.stages = [nn.Sequential(nn.Linear(8, 32), nn.Tanh()), nn.Sequential(nn.Linear(32, 4))]
        for stage in self.stages:
            stage.double()  # rounding must not hide a difference
        self.inputs = torch.randn(BATCH, 8, dtype=torch.float64).chunk(micro_batches)
        self.targets = torch.randn(BATCH, 4, dtype=torch.float64).chunk(micro_batches)
        self.outputs = []
        self.order = []
        self.in_flight = 0
        self.most_in_flight = 0

    def forward(self, i):
        self.order.append(f"F{i}")
        activation = self.inputs[i]
        for stage in self.stages:  # on two GPUs the activation moves to the next one in between
            activation = stage(activation)
        self.outputs.append(activation)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def backward(self, i):
        self.order.append(f"B{i}")
        error = nn.functional.mse_loss(self.outputs[i], self.targets[i], reduction="sum")
        (error / BATCH).backward()  # gradients of all micro-batches add up to that of the mini-batch's mean
        self.in_flight -= 1

    def gradients(self):
        return [parameter.grad for stage in self.stages for parameter in stage.parameters()]


def option_a(step, micro_batches):
    for i in range(micro_batches):
        step.forward(i)
        step.backward(i)


def option_b(step, micro_batches):
    for i in range(micro_batches):
        step.forward(i)
    for i in range(micro_batches):
        step.backward(i)


def option_c(step, micro_batches):
    for i in range(micro_batches):
        step.forward(i)
        if i > 0:
            step.backward(i - 1)
    step.backward(micro_batches - 1)


def option_c_without_condition(step, micro_batches):
    for i in range(micro_batches):
        step.forward(i)
        step.backward(i - 1)
    step.backward(micro_batches - 1)


def agree(some, others):
    return all(torch.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in zip(some, others))


def compare_options(micro_batches):
    """Prints a line for each option. The result says whether all gradients agree."""
    whole = TrainingStep(1)
    option_a(whole, 1)
    all_agree = True
    for name, option in [("A", option_a), ("B", option_b), ("C", option_c)]:
        step = TrainingStep(micro_batches)
        option(step, micro_batches)
        same = agree(step.gradients(), whole.gradients())
        all_agree = all_agree and same
        print(f"{name}  {' '.join(step.order)}  in flight {step.most_in_flight}, "
              f"gradients {'as' if same else 'NOT as'} without micro-batches")
    return all_agree


def show_the_error(micro_batches):
    """Runs option C without its condition. The result says whether PyTorch refused."""
    step = TrainingStep(micro_batches)
    try:
        option_c_without_condition(step, micro_batches)
    except RuntimeError as error:
        print(f"{' '.join(step.order)} and then")
        print(f"RuntimeError: {error}")
        return True
    print(f"{' '.join(step.order)}, and no error")
    return False


def main():
    parser = argparse.ArgumentParser(description="The practical's options A, B and C in PyTorch, on the CPU.")
    parser.add_argument("--micro-batches", type=int, default=4, metavar="M", help="2 to 16; absent = 4")
    parser.add_argument("--without-condition", action="store_true", help="option C without `if i > 0`: it fails")
    arguments = parser.parse_args()
    if not 2 <= arguments.micro_batches <= BATCH or BATCH % arguments.micro_batches != 0:
        parser.error(f"--micro-batches must divide {BATCH}, and be 2 or more")
    show = show_the_error if arguments.without_condition else compare_options
    return 0 if show(arguments.micro_batches) else 1


if __name__ == "__main__":
    sys.exit(main())
