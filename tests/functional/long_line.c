/* SPDX-License-Identifier: Apache-2.0 */
/*
 * long_line.c - a wire that delays what it carries: a long line between two sites, where the kernel
 * has no netem.
 *
 * Usage: long_line NIC NIC MILLISECONDS
 * What arrives at either NIC leaves by the other one after so long, in order; nothing is lost
 * unless RING_BYTES of a direction are under way. Both NICs belong to this process's network
 * namespace and have no addresses. Packets that the kernel has not segmented yet stay whole
 * (PACKET_VNET_HDR), so that a fast line costs little. Prints "ready", and runs until a signal.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES ((size_t)32 << 20)
/* The largest packet with its headers, and the virtio_net_hdr that the kernel puts before it. */
#define PACKET_MAX (66 << 10)
#define NS_PER_MS 1000000ull

/* What the ring has before each packet; a size of 0: the next packet is at the ring's beginning. */
struct entry {
	uint64_t due_ns;
	size_t size;
};

/* One direction. */
struct line {
	int from, to;
	char *ring;
	size_t head, tail; /* the oldest packet, and where the next one goes; equal: it is empty */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "long_line: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int nic_open(const char *name)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name),
	};
	struct packet_mreq all = {.mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
	int room = (int)RING_BYTES;

	/* What this socket sends itself would come back as outgoing, and circle. */
	if (fd < 0 || !address.sll_ifindex ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		die(name);
	return fd;
}

/* The place of a packet of the largest size; NULL: the ring is full. */
static struct entry *entry_next(struct line *line)
{
	const size_t most = sizeof(struct entry) + PACKET_MAX;

	if (line->tail >= line->head) {
		if (line->tail + most + sizeof(struct entry) <= RING_BYTES)
			return (struct entry *)(line->ring + line->tail);
		((struct entry *)(line->ring + line->tail))->size = 0;
		if (line->head <= most)
			return NULL;
		line->tail = 0;
	}
	return line->head - line->tail > most ? (struct entry *)(line->ring + line->tail) : NULL;
}

static void packets_take(struct line *line, uint64_t delay_ns)
{
	struct entry *entry;
	ssize_t size;

	while ((entry = entry_next(line))) {
		size = recv(line->from, entry + 1, PACKET_MAX, 0);
		if (size <= 0)
			return;
		entry->due_ns = now_ns() + delay_ns;
		entry->size = (size_t)size;
		line->tail += (sizeof(*entry) + (size_t)size + 15) / 16 * 16;
	}
}

/* Sends what is due. Returns when the next packet is; UINT64_MAX: there is none. */
static uint64_t packets_give(struct line *line)
{
	struct entry *entry;

	while (line->head != line->tail) {
		entry = (struct entry *)(line->ring + line->head);
		if (!entry->size) {
			line->head = 0;
			continue;
		}
		if (entry->due_ns > now_ns())
			return entry->due_ns;
		(void)!send(line->to, entry + 1, entry->size, 0);
		line->head += (sizeof(*entry) + entry->size + 15) / 16 * 16;
	}
	return UINT64_MAX;
}

int main(int argc, char **argv)
{
	struct line lines[2] = {{.from = -1}};
	struct pollfd fds[2];
	struct timespec pause;
	uint64_t delay_ns, due_ns, other_ns, now;

	if (argc != 4) {
		fprintf(stderr, "Usage: long_line NIC NIC MILLISECONDS\n");
		return 2;
	}
	delay_ns = strtoull(argv[3], NULL, 10) * NS_PER_MS;
	for (int i = 0; i < 2; i++) {
		fds[i] = (struct pollfd){.fd = nic_open(argv[1 + i]), .events = POLLIN};
		lines[i].ring = malloc(RING_BYTES);
		if (!lines[i].ring)
			die("no memory");
	}
	lines[0].from = lines[1].to = fds[0].fd;
	lines[1].from = lines[0].to = fds[1].fd;
	puts("ready");
	fflush(stdout);
	for (;;) {
		packets_take(&lines[0], delay_ns);
		packets_take(&lines[1], delay_ns);
		due_ns = packets_give(&lines[0]);
		other_ns = packets_give(&lines[1]);
		due_ns = other_ns < due_ns ? other_ns : due_ns;
		now = now_ns();
		pause.tv_sec = due_ns == UINT64_MAX ? 1 : 0;
		pause.tv_nsec = due_ns == UINT64_MAX || due_ns <= now ? 0 : (long)(due_ns - now);
		if (pause.tv_nsec >= 1000000000)
			pause = (struct timespec){.tv_sec = 1};
		ppoll(fds, 2, &pause, NULL);
	}
}
