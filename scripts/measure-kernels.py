#!/usr/bin/env python3
"""Times the kernels of a list on one device, with PyTorch's libraries: no toolkit is needed.

  plumbline kernels config.json --sequence 4096 --tensor-parallel 1,2 --list -o needed.csv
  scripts/measure-kernels.py needed.csv -o measured.csv --budget 120
  plumbline import kernels measured.csv --from csv --device 'NVIDIA H100 80GB HBM3' -o h100.kernels.yaml

The first rows of the list come first, and each time is written at once. The same command goes on where the last
one was ended. --blocks config.json times whole blocks besides: what kernels take in a row, beside their sum.
"""
# SPDX-License-Identifier: MIT
import argparse
import csv
import json
import os
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("measure-kernels: error: Python has no module 'torch'; PyTorch's own page says how to install it")
from torch.nn import functional

COLUMNS = ["kind", "dtype", "pass", "a", "b", "c", "d", "e", "f", "us", "spread", "how", "keys", "accumulate"]
PROVENANCE = ["clock_mhz", "watts", "library"]
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
HEAD = 128  # numbers in a head that is rotated: the list has only columns


class LeftOut(Exception):
    """Why a row is not measured."""


class Device:
    """What runs the kernels, how it is timed, and the state that it is in."""

    def __init__(self, name):
        self.is_gpu = name == "cuda"
        if self.is_gpu and not torch.cuda.is_available():
            sys.exit("measure-kernels: error: PyTorch finds no CUDA device; --device cpu rehearses without one")
        self.name = name
        self.flushed = torch.empty((256 if self.is_gpu else 32) << 20, dtype=torch.int8, device=name)
        self.handle = None
        if self.is_gpu:
            try:
                import pynvml
                pynvml.nvmlInit()
                self.handle = pynvml.nvmlDeviceGetHandleByIndex(torch.cuda.current_device())
                self.nvml = pynvml
            except Exception:  # clocks are told where NVML is
                pass

    def state(self):
        if self.handle is None:
            return "", ""
        clock = self.nvml.nvmlDeviceGetClockInfo(self.handle, self.nvml.NVML_CLOCK_SM)
        return clock, round(self.nvml.nvmlDeviceGetPowerUsage(self.handle) / 1e3)

    def synchronize(self):
        if self.is_gpu:
            torch.cuda.synchronize()

    def once(self, work, cold):
        """Microseconds of one call. The device is busy before it, so that the host is in time."""
        if cold:
            self.flushed.zero_()
        if not self.is_gpu:
            begin = time.perf_counter()
            work()
            return (time.perf_counter() - begin) * 1e6
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        torch.cuda._sleep(400_000)
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3

    def time(self, work, cold=True, least=0.04):
        """The mean of the middle eight tenths of the times, and their spread as a share of it."""
        for _ in range(2):
            work()
        self.synchronize()
        times, began = [], time.time()
        while len(times) < 7 or (time.time() - began < least and len(times) < 40):
            times.append(self.once(work, cold))
        times.sort()
        cut = max(1, len(times) // 10)
        kept = times[cut:-cut]
        mean = sum(kept) / len(kept)
        return mean, (kept[-1] - kept[0]) / mean


def product(device, row, sizes, dtype):
    """forward: x[m, k] w[n, k]^T; dgrad: dy[m, k] w[k, n]; wgrad: dy[k, m]^T x[k, n]."""
    m, n, k = sizes[:3]
    new = lambda *shape: torch.randn(*shape, device=device.name, dtype=dtype)
    if row["pass"] == "fwd":
        x, w = new(m, k), new(n, k)
        return {"": lambda: torch.mm(x, w.t())}
    if row["pass"] == "dgrad":
        x, w = new(m, k), new(k, n)
        return {"": lambda: torch.mm(x, w)}
    y, x = new(k, m), new(k, n)
    if not row.get("accumulate"):
        return {"": lambda: torch.mm(y.t(), x)}
    total = torch.zeros(m, n, device=device.name, dtype=torch.float32)
    def added():  # one kernel: the product is added to the sum in fp32
        torch.addmm(total, y.t(), x, out_dtype=torch.float32, out=total)
    try:
        added()
    except (RuntimeError, TypeError) as error:
        raise LeftOut("this PyTorch adds no product to a sum in fp32: " + first_line(error)) from error
    return {"": added}


def many_products(device, row, sizes, dtype):
    count, m, n, k = sizes[:4]
    new = lambda *shape: torch.randn(count, *shape, device=device.name, dtype=dtype)
    if row["pass"] == "wgrad":
        y, x = new(k, m), new(k, n)
        return {"": lambda: torch.bmm(y.transpose(1, 2), x)}
    x, w = new(m, k), new(k, n)
    return {"": lambda: torch.bmm(x, w)}


def attention(device, row, sizes, dtype):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    batch, queries, heads, key_heads, size, value_size = sizes
    keys = int(row.get("keys") or 0) or queries
    if keys != queries:
        raise LeftOut("attention to more keys than queries")
    if row.get("causal") in ("0", "false"):
        raise LeftOut("attention that is not causal")
    new = lambda n, d: torch.randn(batch, n, queries, d, device=device.name, dtype=dtype, requires_grad=True)
    q, k, v = new(heads, size), new(key_heads, size), new(key_heads, value_size)
    ways = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    if not device.is_gpu:
        ways = {"math": SDPBackend.MATH}
    found = {}
    for name, backend in ways.items():
        def forward(backend=backend):
            with sdpa_kernel(backend):
                return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != key_heads)
        try:
            out = forward()
            if row["pass"] == "fwd":
                found[name] = forward
                continue
            grown = torch.randn_like(out)
            backward = lambda out=out, grown=grown: torch.autograd.grad(out, (q, k, v), grown, retain_graph=True)
            backward()
            found[name] = backward
        except RuntimeError as error:
            print(f"note: {name}: {first_line(error)}", file=sys.stderr)
    if not found:
        raise LeftOut("no library of this PyTorch computes it")
    return found


def compiled(device, row, make, inputs):
    """The forward, or the backward, of a function that the compiler fuses."""
    if device.is_gpu:
        torch._dynamo.reset()  # else the same function with many sizes is compiled no longer
    function = torch.compile(make, dynamic=False) if device.is_gpu else make
    wanted = [x for x in inputs if x.requires_grad]
    if row["pass"] == "fwd":
        return {"": lambda: function(*inputs)}
    out = function(*inputs)
    grown = torch.randn_like(out)
    return {"": lambda: torch.autograd.grad(out, wanted, grown, retain_graph=True)}


def moving(device, row, sizes, dtype):
    rows, columns = sizes[:2]
    new = lambda *shape: torch.randn(*shape, device=device.name, dtype=dtype, requires_grad=True)
    kind, passed = row["kind"], row["pass"]
    if passed == "wgrad" or kind not in ("norm", "rotation", "activation", "loss", "lookup", "residual", "sum"):
        raise LeftOut(f"{kind}, {passed}: depends on what the list does not tell")
    if kind == "norm":
        return compiled(device, row, lambda x, w: functional.rms_norm(x, (columns,), w), [new(rows, columns), new(columns)])
    if kind == "activation":  # gated: both halves of a row in one tensor
        return compiled(device, row, lambda u: functional.silu(u[:, :columns]) * u[:, columns:], [new(rows, 2 * columns)])
    if kind == "rotation":  # of queries, and of keys: two kernels
        if columns % (2 * HEAD):
            raise LeftOut("rotation of heads that are not of 128 numbers")
        angles = torch.randn(rows, 1, HEAD, device=device.name, dtype=dtype)
        cosine, sine = angles.cos(), angles.sin()
        def turn(x):
            a, b = x[..., : HEAD // 2], x[..., HEAD // 2 :]
            return x * cosine + torch.cat((-b, a), -1) * sine
        halves = [compiled(device, row, turn, [new(rows, columns // 2 // HEAD, HEAD)])[""] for _ in range(2)]
        return {"": lambda: [half() for half in halves]}
    if kind == "loss":
        labels = torch.randint(columns, (rows,), device=device.name)
        return compiled(device, row, lambda z: functional.cross_entropy(z.float(), labels), [new(rows, columns)])
    if kind == "lookup":
        table = new(32768, columns)
        tokens = torch.randint(32768, (rows,), device=device.name)
        return {"": lambda: functional.embedding(tokens, table)}
    x, y = new(rows, columns).detach(), new(rows, columns).detach()
    if kind == "residual":
        return {"": lambda: x.add_(y)}
    z = torch.empty_like(x)
    return {"": lambda: torch.add(x, y, out=z)}


def kernels_of(device, row):
    """By library: a function that enqueues the kernel."""
    if row["dtype"] not in TYPES:
        raise LeftOut(f"numbers in {row['dtype']}")
    dtype = TYPES[row["dtype"]]
    sizes = [int(float(row[column] or 0)) for column in "abcdef"]
    kind = row["kind"]
    if kind == "gemm":
        return product(device, row, sizes, dtype)
    if kind == "batched":
        return many_products(device, row, sizes, dtype)
    if kind == "grouped":
        raise LeftOut("products of experts in one kernel")
    if kind == "sdpa" or kind.startswith("sdpa-"):
        return attention(device, row, sizes, dtype)
    return moving(device, row, sizes, dtype)


class Block(torch.nn.Module):
    """A block with grouped-query attention and a gated MLP."""

    def __init__(self, config, tensor_parallel, device, dtype):
        super().__init__()
        self.width = config["hidden_size"]
        self.heads = config["num_attention_heads"] // tensor_parallel
        self.key_heads = max(config.get("num_key_value_heads", config["num_attention_heads"]) // tensor_parallel, 1)
        self.size = config.get("head_dim") or self.width // config["num_attention_heads"]
        self.inner = config["intermediate_size"] // tensor_parallel
        linear = lambda inputs, outputs: torch.nn.Linear(inputs, outputs, bias=False, device=device, dtype=dtype)
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(self.width, device=device, dtype=dtype) for _ in range(2))
        self.inputs = linear(self.width, (self.heads + 2 * self.key_heads) * self.size)
        self.outputs = linear(self.heads * self.size, self.width)
        self.up = linear(self.width, 2 * self.inner)
        self.down = linear(self.inner, self.width)

    def forward(self, x, cosine, sine):
        batch, tokens, _ = x.shape
        split = [self.heads * self.size, self.key_heads * self.size, self.key_heads * self.size]
        q, k, v = (t.view(batch, tokens, -1, self.size).transpose(1, 2) for t in self.inputs(self.norms[0](x)).split(split, -1))
        half = self.size // 2
        turn = lambda t: t * cosine + torch.cat((-t[..., half:], t[..., :half]), -1) * sine
        grouped = self.heads != self.key_heads
        y = functional.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True, enable_gqa=grouped)
        x = x + self.outputs(y.transpose(1, 2).reshape(batch, tokens, -1))
        gate, value = self.up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * value)


def write_blocks(device, arguments, writer, out):
    """Two blocks in a row, hot: forward, forward and backward, and the latter for some seconds."""
    with open(arguments.blocks, encoding="utf-8") as file:
        config = json.load(file)
    dtype = torch.bfloat16 if device.is_gpu else torch.float32
    for compiles in (False, True) if device.is_gpu else (False,):
        blocks = torch.nn.ModuleList(Block(config, arguments.tensor_parallel, device.name, dtype) for _ in range(2))
        first = blocks[0]
        calls = [torch.compile(block, dynamic=False) if compiles else block for block in blocks]
        shape = (arguments.batch, arguments.sequence, first.width)
        x = torch.randn(*shape, device=device.name, dtype=dtype, requires_grad=True)
        at = torch.arange(arguments.sequence, device=device.name)[:, None]
        angles = at / 1e4 ** (torch.arange(0, first.size, 2, device=device.name) / first.size)
        cosine, sine = (torch.cat((t, t), -1).to(dtype) for t in (angles.cos(), angles.sin()))
        grown = torch.randn(*shape, device=device.name, dtype=dtype)
        def forward():
            y = x
            for call in calls:
                y = call(y, cosine, sine)
            return y
        def both():
            forward().backward(grown)
        def without_gradients():
            with torch.no_grad():
                forward()
        sizes = [*shape, first.heads, first.key_heads, first.inner]
        kind = "block-" + ("compiled" if compiles else "eager")
        both()
        for passed, work in (("fwd", without_gradients), ("fwd+bwd", both)):
            us, spread = device.time(work, cold=False, least=0.5)
            writer.writerow([kind, "bf16", passed, *sizes, f"{us / 2:.3f}", f"{spread:.4f}", "burst", "", "", *device.state(), ""])
        began, count = time.time(), 0
        while time.time() - began < arguments.sustained:
            both()
            count += 1
        device.synchronize()
        us = (time.time() - began) / count * 1e6
        writer.writerow([kind, "bf16", "fwd+bwd", *sizes, f"{us / 2:.3f}", "", "sustained", "", "", *device.state(), ""])
        out.flush()


def first_line(error):
    return str(error).split("\n")[0][:160]


def identity(row):
    return tuple(str(row.get(column) or "") for column in ["kind", "dtype", "pass", *"abcdef", "keys", "accumulate"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", help="of `plumbline kernels --list`")
    parser.add_argument("-o", dest="output", required=True, help="CSV; what it has is kept")
    parser.add_argument("--budget", type=float, default=120, help="seconds (120)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--blocks", metavar="CONFIG", help="times blocks of this config.json, too")
    parser.add_argument("--sequence", type=int, default=4096, help="of blocks: tokens of a sample (4096)")
    parser.add_argument("--batch", type=int, default=1, help="of blocks: samples (1)")
    parser.add_argument("--tensor-parallel", type=int, default=1, help="of blocks: one rank's part of so many (1)")
    parser.add_argument("--sustained", type=float, default=5, help="of blocks: seconds in one go (5)")
    arguments = parser.parse_args()
    end = time.time() + arguments.budget
    with open(arguments.list, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows or "kind" not in rows[0]:
        sys.exit(f"measure-kernels: error: {arguments.list}: no list of kernels: a column 'kind' is missing")
    done = set()
    if os.path.exists(arguments.output):
        with open(arguments.output, newline="", encoding="utf-8") as file:
            done = {identity({**row, "kind": row["kind"].split("-")[0]}) for row in csv.DictReader(file)}
    device = Device(arguments.device)
    torch.manual_seed(1)
    out = open(arguments.output, "a", newline="", encoding="utf-8")
    writer = csv.writer(out)
    if out.tell() == 0:
        writer.writerow(COLUMNS + PROVENANCE)
    library = f"torch {torch.__version__}"
    if device.is_gpu:
        library += f", CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    if arguments.blocks and not any(one[0].startswith("block") for one in done):
        write_blocks(device, arguments, writer, out)
    left_out, measured, missing = {}, 0, 0
    for row in rows:
        if identity(row) in done:
            continue
        if time.time() > end:
            missing += 1
            continue
        try:
            for name, work in kernels_of(device, row).items():
                us, spread = device.time(work)
                kind = row["kind"].split("-")[0] + ("-" + name if name else "")
                how = name or ("cublaslt" if device.is_gpu and row["kind"] in ("gemm", "batched") else "torch")
                cells = [kind, row["dtype"], row["pass"], *(row[c] for c in "abcdef"), f"{us:.3f}", f"{spread:.4f}", how,
                         row.get("keys", ""), row.get("accumulate", ""), *device.state(), library]
                writer.writerow(cells)
                out.flush()
                measured += 1
        except LeftOut as why:
            left_out[str(why)] = left_out.get(str(why), 0) + 1
        except torch.cuda.OutOfMemoryError:
            left_out["more memory than there is"] = left_out.get("more memory than there is", 0) + 1
            torch.cuda.empty_cache()
        except (AttributeError, ImportError, RuntimeError, TypeError) as error:  # an older PyTorch, another device
            why = f"{row['kind']}, {row['pass']}: {first_line(error)}"
            left_out[why] = left_out.get(why, 0) + 1
    for why, count in left_out.items():
        print(f"note: {count} left out: {why}", file=sys.stderr)
    print(f"{arguments.output}: {measured} times, {missing} rows are left for the next call")


if __name__ == "__main__":
    main()
