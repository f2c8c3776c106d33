#!/usr/bin/env python3
"""PyTorch's memory snapshots as JSON that `plumbline memory --against` reads.

memory-snapshot.py SNAPSHOT... -o memory.json: a snapshot is what torch.cuda.memory._dump_snapshot() wrote on one rank,
after _record_memory_history(). Snapshots stand in the order of the pipeline's devices. PyTorch is not needed: a
snapshot is a pickle of plain values, and no other is read. Devices that allocated nothing are left out.
"""
# SPDX-License-Identifier: MIT
import argparse
import json
import pickle
import sys

MOST_POINTS = 2000


class PlainValues(pickle.Unpickler):
    """Reads lists, maps, texts and numbers, and runs nothing."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"it holds a {module}.{name}; a snapshot has plain values only")


def curve_of(trace, at_end):
    """Pairs of a time in microseconds and the bytes allocated from then on. `at_end` is what the last event left."""
    changes = []
    for event in trace:
        action = event["action"]
        if action == "alloc":
            changes.append((event.get("time_us", 0), event["size"]))
        elif action == "free_completed":
            changes.append((event.get("time_us", 0), -event["size"]))
    held = at_end - sum(change for _, change in changes)
    curve = [(changes[0][0] if changes else 0, held)]
    for at, change in changes:
        held += change
        curve.append((at, held))
    return curve


def thinned(curve):
    """At most MOST_POINTS points; of each part of the curve the lowest and the highest."""
    part = max(1, 2 * len(curve) // MOST_POINTS)
    kept = []
    for begin in range(0, len(curve), part):
        some = curve[begin:begin + part]
        kept += sorted({min(some, key=lambda point: point[1]), max(some, key=lambda point: point[1])})
    return kept


def devices_of(path):
    with open(path, "rb") as file:
        snapshot = PlainValues(file).load()
    traces = snapshot.get("device_traces", [])
    found = []
    for device, trace in enumerate(traces):
        segments = [segment for segment in snapshot.get("segments", []) if segment.get("device", 0) == device]
        allocated = sum(segment.get("allocated_size", 0) for segment in segments)
        curve = curve_of(trace, allocated)
        if len(curve) == 1 and not segments:
            continue
        found.append({
            "source": path,
            "device": device,
            "least_bytes": min(held for _, held in curve),
            "peak_bytes": max(held for _, held in curve),
            "reserved_bytes": sum(segment.get("total_size", 0) for segment in segments),
            "curve": [list(point) for point in thinned(curve)],
        })
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshots", nargs="+", metavar="SNAPSHOT")
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    arguments = parser.parse_args()
    devices = []
    for path in arguments.snapshots:
        try:
            found = devices_of(path)
        except (OSError, pickle.UnpicklingError, EOFError, AttributeError, KeyError, TypeError, ValueError) as error:
            sys.exit(f"{path}: error: no snapshot of PyTorch's memory: {error}")
        if not found:
            sys.exit(f"{path}: error: no device allocated anything; was torch.cuda.memory._record_memory_history() called?")
        devices += found
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump({"version": 1, "kind": "memory", "devices": devices}, file)
        file.write("\n")
    for device in devices:
        print(f"{device['source']}: device {device['device']}, {device['least_bytes']} to {device['peak_bytes']} bytes"
              f" allocated, {device['reserved_bytes']} reserved at the end")


if __name__ == "__main__":
    main()
