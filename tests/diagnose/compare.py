#!/usr/bin/env python3
"""Compares what `plumbline diagnose` says of generated traces with their truth.

compare.py PLUMBLINE FOLDER OPTIONS...: makes traces with make_traces.py OPTIONS in FOLDER, diagnoses them and prints
each difference beyond what the form of the traces allows. Ends with 1 if there is any.
"""
# SPDX-License-Identifier: MIT
import csv
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def traces_of(folder):
    found = glob.glob(os.path.join(folder, "rank*.json")) + glob.glob(os.path.join(folder, "rank*.json.gz"))
    return sorted(found, key=lambda name: int("".join(filter(str.isdigit, os.path.basename(name).split(".")[0]))))


def diagnose(plumbline, folder, extra):
    table = os.path.join(folder, "ops.csv")
    command = [plumbline, "diagnose", *traces_of(folder), "--json", "--csv", table, *extra]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"diagnose ended with {done.returncode}: {done.stderr}")
    with open(table, encoding="utf-8") as rows:
        return json.loads(done.stdout), list(csv.DictReader(rows))


def recorded_ops(rows):
    """The ops by (step, stage, kind, micro-batch), each with its begin and end."""
    return {
        (int(row["iteration"]), int(row["stage"]), row["op"], int(row["micro_batch"])):
            (int(row["begin_ns"]), int(row["end_ns"]))
        for row in rows
    }


def true_ops(truth, copy):
    """The same of the truth, and its first begin."""
    ops = {}
    for rank in truth["ranks"]:
        if rank["replica"] != copy:
            continue
        for iteration in rank["iterations"]:
            for kind, stage, micro_batch, begin, end in iteration["ops"]:
                ops[(iteration["step"], stage, kind, micro_batch)] = (begin, end)
    return ops, min(begin for begin, _ in ops.values())


def worst_of_ops(truth, rows, copy, numbered):
    """The largest error of a length and of a begin; 'missing' ops are errors, too."""
    true, origin = true_ops(truth, copy)
    found = recorded_ops(rows)
    if not numbered:  # without steps, iterations count from 0
        first = min(step for step, *_ in true)
        true = {(step - first, *rest): span for (step, *rest), span in true.items()}
    if set(found) != set(true):
        return None
    length = max(abs((found[op][1] - found[op][0]) - (true[op][1] - true[op][0])) for op in true)
    begin = max(abs(found[op][0] - (true[op][0] - origin)) for op in true)
    return length, begin


def tells_pairs(options):
    """Whether the traces tell which send belongs to which receive: by ranges, or by what kernels know of themselves."""
    return "--no-pairs" not in options and not ("--old-nccl" in options and "classic" in options)


def orders_differ(truth, said, copy):
    for rank in truth["ranks"]:
        if rank["replica"] != copy:
            continue
        order = [f"{stage}{kind}{micro_batch}" for kind, stage, micro_batch, *_ in rank["iterations"][0]["ops"]]
        if order not in said["order"]:
            return True
    return False


def worst_idle(truth, said, copy, knows_arrivals):
    """The largest error of an idle time by cause, as a share of the iteration."""
    worst = 0.0
    ranks = [rank for rank in truth["ranks"] if rank["replica"] == copy]
    counted = max(len(ranks[0]["iterations"]) - 1, 1)  # the last has no next one
    length = said["iteration_time_s"]["mean"]
    for device, rank in zip(said["devices"], ranks):
        mine = device["idle_s"]
        pairs = {
            "fill": mine["fill"],
            "dependency": mine["dependency"] + mine["straggler"],
            "transfer": mine["transfer"],
            "overhead": mine["host"] + mine["collective"] + mine["send"],
            "drain": mine["drain"],
        }
        def true_of(causes):
            return sum(one["idle_ns"][cause] for one in rank["iterations"][:counted] for cause in causes) / counted / 1e9

        groups = [["fill"], ["dependency"], ["transfer"], ["overhead"], ["drain"]]
        if not knows_arrivals:  # nothing tells a late host from a transfer
            groups = [["fill"], ["dependency"], ["transfer", "overhead"], ["drain"]]
        for causes in groups:
            worst = max(worst, abs(sum(pairs[cause] for cause in causes) - true_of(causes)) / length)
    return worst


def main():
    plumbline, folder, *options = sys.argv[1:]
    extra = []
    if "--" in options:
        at = options.index("--")
        options, extra = options[:at], options[at + 1:]
    subprocess.run([sys.executable, os.path.join(HERE, "make_traces.py"), folder, *options], check=True)
    with open(os.path.join(folder, "truth.json"), encoding="utf-8") as text:
        truth = json.load(text)
    said, rows = diagnose(plumbline, folder, extra)
    form = options[options.index("--form") + 1] if "--form" in options else "gpu"
    copy = int(extra[extra.index("--copy") + 1]) if "--copy" in extra else 0
    problems = []
    worst = worst_of_ops(truth, rows, copy, "--no-step" not in options)
    if worst is None:
        problems.append("other ops were found than ran")
    else:
        length, begin = worst
        # The legacy form has whole microseconds. Without both ends of transfers, clocks are known less well.
        drifts = "--drift" in options
        most_length = {"gpu": 1000 if drifts else 0, "cpu": 1000 if drifts else 0, "legacy": 2000}[form]
        if "none" in options:  # guessed: without small pieces of work at the begin of a backward
            most_length = 40000
        most_begin = {"gpu": 2000, "cpu": 20000, "legacy": 25000}[form] + (40000 if "none" in options else 0)
        if not tells_pairs(options):  # clocks are known by ops alone
            late = float(options[options.index("--host-late") + 1]) if "--host-late" in options else 2
            most_begin = 40000 + int(2000 * late)
        if length > most_length:
            problems.append(f"an op is {length} ns longer or shorter than it was")
        if begin > most_begin:
            problems.append(f"an op begins {begin} ns from where it did")
    if orders_differ(truth, said, copy):
        problems.append("another order was found")
    idle = worst_idle(truth, said, copy, tells_pairs(options))
    if idle > (0.01 if "none" in options else 0.005):
        problems.append(f"an idle time is off by {100 * idle:.2f} % of the iteration")
    text = "length {} ns, begin {} ns".format(*worst) if worst else "-"
    print(f"{' '.join(options)}: {text}, idle {100 * idle:.3f} %, replay {100 * said['replay_error']:+.2f} %")
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
