#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""all_reduce.py - PyTorch over the mesh: one all-reduce after another, checked and timed.

On every machine (docs/guides/pytorch.md):

  export NCCL_NET_PLUGIN=/usr/local/lib/libnccl-net-mesh.so NCCL_NET=Mesh
  export NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=<management NIC>
  torchrun --nnodes 3 --nproc_per_node 1 --node_rank R \\
      --master_addr <address of node 0> --master_port 29500 examples/all_reduce.py [--max-mib N]

Several ranks may share a GPU (--nproc_per_node 3): then they talk over the network, too, and times
mean nothing. Rank 0 prints size, time and bus bandwidth as nccl-tests defines it. Exit status 0 if
every sum was right on every rank, 1 if not, 77 without a GPU. --cpu tries the launch where there is
none: on the CPU, over PyTorch's own gloo, which uses neither NCCL nor the mesh.
"""
import argparse
import os
import socket
import sys
import time

SKIP = 77
WARMUPS, ITERATIONS = 5, 20


def share_gpus(environ, gpus):
    """NCCL refuses ranks of one machine on one GPU, and shares memory between others: if they are
    more than the GPUs, each becomes a machine of its own."""
    if int(environ.get("LOCAL_WORLD_SIZE", "1")) > gpus:
        environ.setdefault("NCCL_HOSTID", "%s-%s" % (socket.gethostname(), environ["LOCAL_RANK"]))


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


def check_and_time(torch, dist, device, elements):
    """Seconds of one all-reduce of so many floats; None if a sum was wrong anywhere."""
    def finish():
        if device == "cuda":
            torch.cuda.synchronize()

    ranks, rank = dist.get_world_size(), dist.get_rank()
    # Whole numbers below 2^24: exact in any order of adding.
    pattern = torch.arange(elements, device=device, dtype=torch.int64) % 1021
    data = (pattern + rank).float()
    dist.all_reduce(data)
    wrong = (data != (pattern * ranks + ranks * (ranks - 1) // 2).float()).sum()
    dist.all_reduce(wrong)
    if wrong.item():
        return None
    for _ in range(WARMUPS):
        dist.all_reduce(data)
    finish()
    begin = time.perf_counter()
    for _ in range(ITERATIONS):
        dist.all_reduce(data)
    finish()
    return (time.perf_counter() - begin) / ITERATIONS


def library(torch, device):
    """What PyTorch talks to, with its version."""
    if device == "cpu":
        return "gloo on the CPU"
    return "NCCL " + ".".join(map(str, torch.cuda.nccl.version()))


def run(torch, dist, device, largest):
    """The table; True if everything was right."""
    first = dist.get_rank() == 0
    right = True
    if first:
        print("# PyTorch %s, %s, %d ranks" % (
            torch.__version__, library(torch, device), dist.get_world_size()))
        print("# %12s %12s %12s" % ("size (B)", "time (us)", "busbw (GB/s)"))
    for elements in sizes(largest):
        seconds = check_and_time(torch, dist, device, elements)
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
    parser.add_argument("--cpu", action="store_true", help="without GPUs and NCCL")
    options = parser.parse_args()
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        print("skipped: no PyTorch")
        return SKIP
    if not options.cpu and not torch.cuda.is_available():
        print("skipped: no GPU (--cpu tries the launch without)")
        return SKIP
    if not options.cpu:
        share_gpus(os.environ, torch.cuda.device_count())
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    dist.init_process_group("gloo" if options.cpu else "nccl")
    right = run(torch, dist, "cpu" if options.cpu else "cuda", options.max_mib << 20)
    dist.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
