/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roce_count - counts the RDMA operations that one NIC sends and receives, by what is on the wire.
 *
 * Usage: roce_count NIC
 *
 * Prints "counting", and at SIGTERM or SIGINT one line for each direction:
 * how many messages of each kind began there, which is how many work requests were posted. What a
 * busy machine sends again counts once. RoCE v2 is UDP to port 4791, and behind the UDP header is
 * the base transport header with the opcode, the queue pair and the packet's sequence number
 * (InfiniBand Architecture Specification, volume 1, 9.2 and table 38).
 */
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#define ROCE_PORT 4791
/* Only the headers of each packet are read. */
#define SNAP_BYTES 96
#define RECEIVE_BUFFER_BYTES (64 << 20)
/* Behind Ethernet, IP and UDP. */
#define OPCODE_OFFSET_IPV4 42
#define OPCODE_OFFSET_IPV6 62
#define OPCODE_SEND_MIDDLE 0x01
#define OPCODE_WRITE_MIDDLE 0x07
#define OPCODE_READ_RESPONSE_MIDDLE 0x0e
#define OPCODES 256
/* The base transport header: bytes of it, and where its numbers of 24 bits are. */
#define BTH_BYTES 12
#define BTH_QUEUE_PAIR 5
#define BTH_SEQUENCE 9
#define SEQUENCE_HALF (1u << 23)
/* Queue pairs that are sent to in one direction. */
#define QUEUE_PAIRS 256
/* How late we may notice that we are to end, in microseconds. */
#define PATIENCE_US 100000

enum kind {
	KIND_NONE, /* goes on with what another packet began, or is not an operation */
	KIND_SEND,
	KIND_WRITE,
	KIND_READ,
	KIND_ATOMIC,
	KIND_DATAGRAM, /* the connection manager's */
	KIND_ACK,
	KINDS,
};

static const char *const kind_names[KINDS] = {
	[KIND_SEND] = "sends",	   [KIND_WRITE] = "writes",	  [KIND_READ] = "reads",
	[KIND_ATOMIC] = "atomics", [KIND_DATAGRAM] = "datagrams", [KIND_ACK] = "acks",
};

/* The packets of a reliable connection that begin a message. */
static const uint8_t kind_of_opcode[OPCODES] = {
	[0x00] = KIND_SEND,   [0x04] = KIND_SEND,   [0x05] = KIND_SEND,	    [0x17] = KIND_SEND,
	[0x06] = KIND_WRITE,  [0x0a] = KIND_WRITE,  [0x0b] = KIND_WRITE,    [0x0c] = KIND_READ,
	[0x13] = KIND_ATOMIC, [0x14] = KIND_ATOMIC, [0x64] = KIND_DATAGRAM, [0x65] = KIND_DATAGRAM,
	[0x11] = KIND_ACK,
};

/* Those that end a write with immediate data. */
static const bool is_write_with_immediate[OPCODES] = {[0x09] = true, [0x0b] = true};

struct queue_pair {
	uint32_t number, sequence; /* of the newest packet */
};

struct counts {
	uint64_t kinds[KINDS];
	uint64_t immediates;
	struct queue_pair queue_pairs[QUEUE_PAIRS];
	int num_queue_pairs;
};

static volatile sig_atomic_t ended;

static void end(int signal)
{
	ended = 1;
}

static int failed(const char *what)
{
	fprintf(stderr, "roce_count: %s: %s\n", what, strerror(errno));
	return -1;
}

/*
 * UDP to ROCE_PORT, over IPv4 without options or IPv6 without extension headers. Packets in the
 * middle of a message are left out, because a busy machine would miss packets.
 */
static int filter_attach(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12), /* EtherType */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 6),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23), /* protocol */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 14),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 36), /* destination port */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_PORT, 0, 12),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, OPCODE_OFFSET_IPV4),
		BPF_STMT(BPF_JMP | BPF_JA, 6),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 9),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20), /* next header */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 7),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 56), /* destination port */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_PORT, 0, 5),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, OPCODE_OFFSET_IPV6),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OPCODE_SEND_MIDDLE, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OPCODE_WRITE_MIDDLE, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OPCODE_READ_RESPONSE_MIDDLE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SNAP_BYTES),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* Returns a socket that is given all RoCE packets of @nic, or -1. */
static int capture_open(const char *nic)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(nic),
	};
	struct timeval patience = {.tv_usec = PATIENCE_US};
	int fd, room = RECEIVE_BUFFER_BYTES;

	if (!address.sll_ifindex)
		return failed(nic);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd < 0)
		return failed("cannot open a packet socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    filter_attach(fd) || bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		failed("cannot capture");
		close(fd);
		return -1;
	}
	return fd;
}

static uint32_t number_24(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
}

/* False for a packet that was sent before: each queue pair counts what it sends. */
static bool is_first_time(const uint8_t *bth, struct counts *counts)
{
	uint32_t number = number_24(bth + BTH_QUEUE_PAIR), sequence = number_24(bth + BTH_SEQUENCE);
	struct queue_pair *pair = counts->queue_pairs, *end = pair + counts->num_queue_pairs;
	uint32_t ahead;

	while (pair < end && pair->number != number)
		pair++;
	if (pair == end) {
		if (counts->num_queue_pairs == QUEUE_PAIRS)
			return true;
		counts->num_queue_pairs++;
		*pair = (struct queue_pair){number, sequence};
		return true;
	}
	ahead = (sequence - pair->sequence) & (2 * SEQUENCE_HALF - 1);
	if (!ahead || ahead >= SEQUENCE_HALF)
		return false;
	pair->sequence = sequence;
	return true;
}

/* Of a reliable connection: answers have the sequence numbers of what they answer. */
static bool is_request(uint8_t opcode)
{
	return kind_of_opcode[opcode] != KIND_NONE ? kind_of_opcode[opcode] < KIND_DATAGRAM
						   : is_write_with_immediate[opcode];
}

static void packet_count(const uint8_t *packet, size_t size, struct counts *counts)
{
	bool ipv4 = packet[12] == ETH_P_IP >> 8 && packet[13] == (ETH_P_IP & 0xff);
	size_t offset = ipv4 ? OPCODE_OFFSET_IPV4 : OPCODE_OFFSET_IPV6;
	uint8_t opcode;

	if (size < offset + BTH_BYTES)
		return;
	opcode = packet[offset];
	if (is_request(opcode) && !is_first_time(packet + offset, counts))
		return;
	counts->kinds[kind_of_opcode[opcode]]++;
	counts->immediates += is_write_with_immediate[opcode];
}

static void counts_print(const char *direction, const struct counts *counts)
{
	printf("%s", direction);
	for (int kind = KIND_NONE + 1; kind < KINDS; kind++)
		printf(" %s %llu", kind_names[kind], (unsigned long long)counts->kinds[kind]);
	printf(" immediates %llu\n", (unsigned long long)counts->immediates);
}

/* A count that missed packets is not valid. */
static int dropped_check(int fd)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		return failed("cannot read the statistics");
	if (!stats.tp_drops)
		return 0;
	fprintf(stderr, "roce_count: %u packets were missed\n", stats.tp_drops);
	return -1;
}

/* Counts until a signal comes, and what had arrived by then. */
static void capture_run(int fd, struct counts *sent, struct counts *received)
{
	uint8_t packet[SNAP_BYTES];
	struct sockaddr_ll from;
	socklen_t len;
	ssize_t size;

	for (;;) {
		len = sizeof(from);
		size = recvfrom(fd, packet, sizeof(packet), ended ? MSG_DONTWAIT : 0,
				(struct sockaddr *)&from, &len);
		if (size > ETH_HLEN)
			packet_count(packet, (size_t)size,
				     from.sll_pkttype == PACKET_OUTGOING ? sent : received);
		else if (size < 0 && ended && errno == EAGAIN)
			break;
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = end};
	struct counts sent = {0}, received = {0};
	int fd, ret;

	if (argc != 2) {
		fprintf(stderr, "usage: roce_count NIC\n");
		return 2;
	}
	fd = capture_open(argv[1]);
	if (fd < 0)
		return 1;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	puts("counting");
	fflush(stdout);
	capture_run(fd, &sent, &received);
	ret = dropped_check(fd);
	close(fd);
	counts_print("sent", &sent);
	counts_print("received", &received);
	return ret ? 1 : 0;
}
