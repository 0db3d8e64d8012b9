#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""all_reduce.py - PyTorch over the mesh: one all-reduce after another, checked and timed.

On every machine (docs/guides/pytorch.md):

  export NCCL_NET_PLUGIN=mesh NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=<management NIC>
  torchrun --nnodes 3 --nproc-per-node 1 --node-rank R \\
      --master-addr <address of node 0> --master-port 29500 examples/all_reduce.py [--max-mib N]

Rank 0 prints size, time and bus bandwidth as nccl-tests defines it. Exit status 0 if every sum
was right on every rank, 1 if not, 77 without a GPU.
"""
import argparse
import os
import sys
import time

SKIP = 77
WARMUPS, ITERATIONS = 5, 20


def bus_bandwidth(size, seconds, ranks):
    """GB/s (10^9) on the bus of an all-reduce of @size bytes: nccl-tests, doc/PERFORMANCE.md."""
    return size / seconds / 1e9 * 2 * (ranks - 1) / ranks


def sizes(largest):
    """4 bytes, 64 bytes, 1 KiB ... in elements of a float, up to @largest bytes."""
    elements = 1
    while elements * 4 <= largest:
        yield elements
        elements *= 16
    if elements // 16 * 4 < largest:
        yield largest // 4


def check_and_time(torch, dist, elements):
    """Seconds of one all-reduce of so many floats; None if a sum was wrong anywhere."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    # Whole numbers below 2^24: exact in any order of adding.
    pattern = torch.arange(elements, device="cuda", dtype=torch.int64) % 1021
    data = (pattern + rank).float()
    dist.all_reduce(data)
    wrong = (data != (pattern * ranks + ranks * (ranks - 1) // 2).float()).sum()
    dist.all_reduce(wrong)
    if wrong.item():
        return None
    for _ in range(WARMUPS):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(ITERATIONS):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / ITERATIONS


def run(torch, dist, largest):
    """The table; True if everything was right."""
    first = dist.get_rank() == 0
    right = True
    if first:
        print("# PyTorch %s, NCCL %s, %d ranks" % (
            torch.__version__, ".".join(map(str, torch.cuda.nccl.version())),
            dist.get_world_size()))
        print("# %12s %12s %12s" % ("size (B)", "time (us)", "busbw (GB/s)"))
    for elements in sizes(largest):
        seconds = check_and_time(torch, dist, elements)
        right = right and seconds is not None
        if first and seconds is None:
            print("  %12d wrong sums" % (elements * 4))
        elif first:
            print("  %12d %12.2f %12.3f" % (
                elements * 4, seconds * 1e6,
                bus_bandwidth(elements * 4, seconds, dist.get_world_size())), flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-mib", type=int, default=256, help="largest size (default 256)")
    options = parser.parse_args()
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        print("skipped: no PyTorch")
        return SKIP
    if not torch.cuda.is_available():
        print("skipped: no GPU")
        return SKIP
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    dist.init_process_group("nccl")
    right = run(torch, dist, options.max_mib << 20)
    dist.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
