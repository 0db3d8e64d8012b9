/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - the text of --help. */
#include "help.h"

static const char usage[] =
	"Usage: RANK=r WORLD_SIZE=n MASTER_ADDR=address MASTER_PORT=port fabric_pingpong "
	"[options]\n"
	"Start one process for each rank, in any order. `fabric_pingpong --help` explains more.\n";

static const char *const page[] = {
	"NAME\n"
	"    fabric_pingpong - drive an NCCL net plugin as NCCL does, check and measure pairs\n"
	"\n"
	"SYNOPSIS\n"
	"    RANK=r WORLD_SIZE=n MASTER_ADDR=address MASTER_PORT=port fabric_pingpong [options]\n"
	"\n"
	"DESCRIPTION\n"
	"    Loads a net plugin and connects every ordered pair of ranks with it. It needs no GPU\n"
	"    and no NCCL. The calls come in NCCL's order with its habits: properties in memory\n"
	"    that is not zeroed, connect and accept polled in turn, old values in *request, only\n"
	"    the oldest request tested, receives larger than the messages, a thread for set-up\n"
	"    and one for data. For each pair the bytes of every message are checked, then latency\n"
	"    (half a round trip) and bandwidth are measured. Rank 0 prints the result.\n"
	"\n"
	"    Start one process for each rank, on one machine or on several, in any order. Rank 0\n"
	"    listens on MASTER_ADDR:MASTER_PORT (TCP); the others connect to it.\n"
	"\n"
	"OPTIONS\n"
	"    Options with a star count on rank 0, which sends them to the others.\n"
	"\n"
	"    -p, --plugin PATH   the plugin; a name without '/' is looked up by the loader.\n"
	"                        Default: libnccl-net-mesh.so beside this program, in ../lib or\n"
	"                        ../lib64, then by the loader\n"
	"        --abi N         net ABI version 6 to 12; default: the newest it exports\n"
	"    -j, --json          print one JSON document instead of text (rank 0)\n"
	"    -v, --verbose       show the plugin's INFO lines; twice: TRACE lines, too\n"
	"        --pairs LIST    only these pairs, for example 0-1,1-0 (rank 0)\n"
	"  * -s, --sizes LIST    bytes with K, M or G (default 8,4K,64K,512K,1M,4M)\n"
	"  * -c, --channels N    comms in each direction of a pair, all driven by one thread,\n"
	"                        as NCCL's channels are (default 2, at most 127). --comms N is\n"
	"                        the same\n"
	"  * -d, --dev N         NIC index given to listen and connect, modulo the number of\n"
	"                        NICs; 'rank': the rank's number, as where each GPU has a NIC\n"
	"                        nearby; default: the channel's number, which is what NCCL\n"
	"                        does where all are near\n",
	"  *     --inflight N    messages outstanding on a comm, 1 to 32 (default 8, as in NCCL)\n"
	"  *     --seconds S     time for the latency and again for the bandwidth of each size\n"
	"                        (default 0.25)\n"
	"  * -n, --iters N       so many messages instead: round trips, and messages of a stream\n"
	"                        on each comm\n"
	"  *     --repeat N      streams for each size, of which the median counts (default 5)\n"
	"  *     --check         run the correctness matrix only, measure nothing\n"
	"  *     --no-check      measure without the correctness matrix; the column check then\n"
	"                        says samples instead of ok\n"
	"  *     --check-max N   largest message of the correctness matrix (default 1 MiB and one\n"
	"                        byte)\n"
	"  *     --all-at-once   all pairs together instead of one after another\n"
	"  * -t, --timeout S     give up after S seconds without any progress (default 120)\n"
	"        --rendezvous-timeout S\n"
	"                        how long ranks wait for each other at the start (default 60)\n"
	"    -h, --help          this page\n"
	"        --version       the version of this program\n"
	"\n"
	"WHAT IS CHECKED\n"
	"    Each 8-byte word of a message holds sender, receiver, channel, message number and\n"
	"    offset, so that a wrong byte shows where it came from. The correctness matrix looks\n"
	"    at every byte, at the bytes around each message, and at the reported size, for sizes\n"
	"    from 0 to 1 MiB and one byte, aligned and not, receives posted before and after the\n"
	"    send, 8 and 32 messages outstanding, receives larger than the message, while other\n"
	"    memory is registered beside the data. The first messages of each measured size are\n"
	"    checked in full, too. In the measured part, messages over 4 KiB are checked at the\n"
	"    first and last 64 bytes and at one word in every 4 KiB, so that checking does not\n"
	"    slow the stream. A slot is used again only after its message was checked.\n",
	"\n"
	"    Small messages (up to 128 KiB, but not in most of the matrix) are received as NCCL\n"
	"    does for its LL and LL128 protocols, with an optional completion: the plugin may\n"
	"    then report a receive done before its bytes are there, and report no size.\n"
	"\n"
	"FIGURES\n"
	"    Latency: median over round trips on channel 0, halved. Bandwidth: all channels of\n"
	"    the pair's direction together, from the first send to the receiver's answer that all\n"
	"    has come and is right; median over the streams. Gbit/s are 10^9 bits of data a\n"
	"    second.\n"
	"\n"
	"PATHS\n"
	"    nccl-net-mesh says which path a comm took. For other plugins the NIC shown is the\n"
	"    one whose tx_bytes grew most, or '?' where none grew.\n"
	"\n"
	"ENVIRONMENT\n"
	"    RANK and WORLD_SIZE (or OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, SLURM_PROCID\n"
	"    and SLURM_NTASKS, PMI_RANK and PMI_SIZE), MASTER_ADDR, MASTER_PORT. The ranks meet\n"
	"    one port further where torchrun's own store listens on MASTER_PORT\n"
	"    (TORCHELASTIC_USE_AGENT_STORE=True). The plugin reads its own.\n"
	"\n"
	"EXIT STATUS\n"
	"    0 on every rank if all pairs were connected and all was right, 1 if anything failed\n"
	"    on any rank, 2 for wrong use.\n"
	"\n"
	"EXAMPLE\n"
	"    On three machines, with r = 0, 1 and 2:\n"
	"        RANK=r WORLD_SIZE=3 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 fabric_pingpong\n",
};

void help_print_usage(FILE *file)
{
	fputs(usage, file);
}

void help_print(FILE *file)
{
	for (size_t i = 0; i < sizeof(page) / sizeof(page[0]); i++)
		fputs(page[i], file);
}
