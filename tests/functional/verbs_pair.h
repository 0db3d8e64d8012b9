/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_pair.h - two processes on one cable of RDMA NICs, each with the domain of its NIC. They
 * exchange cards, which are files in a folder. For tests of the fabric layer over verbs.
 */
#ifndef VERBS_PAIR_H
#define VERBS_PAIR_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/domain.h"
#include "fabric/mr.h"
#include "fabric/poll.h"
#include "fabric/remote.h"

#define STEP_MS 30000

/* What the two processes exchange. */
struct card {
	size_t name_len;
	uint8_t name[MESH_ENDPOINT_NAME_MAX];
	uint64_t address, key;
};

static const char *folder; /* both processes see it; empty at the start */
static struct mesh_domain *domain;
static struct mesh_remote *remote;

static inline int fail(const char *what)
{
	printf("FAIL: %s\n", what);
	exit(1);
}

static inline void log_print(enum mesh_log_level level, const char *file, int line,
			     const char *text)
{
	static const char *const names[] = {"WARN", "INFO", "TRACE"};

	if (level != MESH_LOG_TRACE)
		printf("%s %s\n", names[level], text);
}

static inline void pause_ms(unsigned int ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&pause, NULL);
}

static inline void turn(void)
{
	mesh_domain_poll(domain);
	pause_ms(1);
}

static inline void card_put(const char *name, const struct card *card)
{
	char path[256], draft[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(draft, sizeof(draft), "%s/.%s", folder, name);
	file = fopen(draft, "w");
	if (!file || fwrite(card, sizeof(*card), 1, file) != 1 || fclose(file) ||
	    rename(draft, path))
		fail("cannot write into the folder");
}

/* @wait: what is done until the card is there */
static inline void card_await(const char *name, struct card *card, void (*wait)(void))
{
	uint64_t deadline = mesh_clock_ms() + STEP_MS;
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	while (!(file = fopen(path, "r"))) {
		if (mesh_clock_ms() > deadline)
			fail("the other process does not come");
		wait();
	}
	if (fread(card, sizeof(*card), 1, file) != 1)
		fail("the other process wrote nonsense");
	fclose(file);
}

static inline void card_get(const char *name, struct card *card)
{
	card_await(name, card, turn);
}

/* @argv: [2] the NIC, [3] its address with its prefix, [4] its RDMA device, [5] the folder */
static inline void domain_open(char **argv)
{
	static struct mesh_nic nic;
	struct mesh_domain_options options = {
		.nic = &nic, .provider = MESH_PROVIDER_VERBS_RXM, .payload_max = 1024};

	setvbuf(stdout, NULL, _IOLBF, 0);
	mesh_log_sink_set(log_print);
	folder = argv[5];
	snprintf(nic.netdev, sizeof(nic.netdev), "%s", argv[2]);
	snprintf(nic.rdma.device, sizeof(nic.rdma.device), "%s", argv[4]);
	nic.rdma.port = 1;
	strcpy(nic.rdma.state, "4: ACTIVE");
	nic.rdma.link_layer = MESH_LINK_LAYER_ETHERNET;
	if (mesh_addr_parse(argv[3], &nic.source) || mesh_domain_open(&options, &domain))
		fail("no domain");
}

static inline void remote_open(const struct card *card)
{
	if (mesh_remote_open(domain, card->name, card->name_len, &remote))
		fail("no remote");
}

/* Our card, with nothing but the name of our endpoint. */
static inline struct card card_own(void)
{
	struct card card = {.name_len = domain->name_len};

	memcpy(card.name, domain->name, domain->name_len);
	return card;
}

struct end {
	struct mesh_op op;
	bool done;
	int error;
};

static inline void write_ended(struct mesh_op *op, int error)
{
	struct end *end = (struct end *)op;

	end->done = true;
	end->error = error;
}

/* Writes so much of what @mr covers to the place that the card names; returns how it ended. */
static inline int write_there(const struct card *card, struct mesh_mr *mr, const void *data,
			      size_t size)
{
	uint64_t deadline = mesh_clock_ms() + STEP_MS;
	struct end end = {.op.complete = write_ended};
	struct mesh_write write = {
		.data = data,
		.size = size,
		.mr = mr,
		.address = card->address,
		.key = card->key,
	};
	int ret;

	while ((ret = mesh_domain_write(domain, remote, &write, &end.op)) == -EAGAIN) {
		if (mesh_clock_ms() > deadline)
			return -EAGAIN; /* the connection has ended */
		turn();
	}
	while (!ret && !end.done) {
		if (mesh_clock_ms() > deadline)
			fail("a write does not end");
		turn();
	}
	return ret ? ret : end.error;
}

#endif
