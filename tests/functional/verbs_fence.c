/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_fence.c - tests whether a peer can write into memory after its access was revoked. Two
 * processes on one cable of RDMA NICs: the receiver grants access to memory and revokes it in one
 * of several ways; then the sender writes there.
 *
 * Usage: verbs_fence receiver|sender NETDEV ADDRESS DEVICE FOLDER HOW
 *
 * HOW: close     the registration is closed
 *      fence     it stays, but the peer is cut off
 *      cached    it is closed, and was in libfabric's cache: what happens then is only printed
 *      open      nothing is taken back: the write must arrive, or the test tests nothing
 * FOLDER: both processes see it; empty at the start.
 *
 * Prints "late write: arrived" or "late write: refused" (receiver), "late write: STATUS" (sender).
 * Exit status 0 if what HOW promises has come true.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/domain_open.h"
#include "fabric/fence.h"
#include "fabric/mr.h"
#include "fabric/poll.h"
#include "fabric/write.h"

#define MEMORY_BYTES 65536
#define STEP_MS 30000
/* How long the receiver looks for the late write after the sender has seen its end. */
#define LOOK_MS 500

/* What the two processes exchange. */
struct card {
	size_t name_len;
	uint8_t name[MESH_ENDPOINT_NAME_MAX];
	uint64_t address, key;
};

struct end {
	struct mesh_op op;
	bool done;
	int error;
};

static const char *folder;
static struct mesh_domain *domain;
static struct mesh_remote *remote;
static char *memory;

static int fail(const char *what)
{
	printf("FAIL: %s\n", what);
	exit(1);
}

static void log_print(enum mesh_log_level level, const char *file, int line, const char *text)
{
	static const char *const names[] = {"WARN", "INFO", "TRACE"};

	(void)file;
	(void)line;
	if (level != MESH_LOG_TRACE)
		printf("%s %s\n", names[level], text);
}

static void turn(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	mesh_domain_poll(domain);
	nanosleep(&pause, NULL);
}

static void card_put(const char *name, const struct card *card)
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

static void card_get(const char *name, struct card *card)
{
	uint64_t deadline = mesh_clock_ms() + STEP_MS;
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	while (!(file = fopen(path, "r"))) {
		if (mesh_clock_ms() > deadline)
			fail("the other process does not come");
		turn();
	}
	if (fread(card, sizeof(*card), 1, file) != 1)
		fail("the other process wrote nonsense");
	fclose(file);
}

static void domain_open(char **argv)
{
	static struct mesh_nic nic;
	struct mesh_domain_options options = {
		.nic = &nic, .provider = MESH_PROVIDER_VERBS_RXM, .payload_max = 1024};

	snprintf(nic.netdev, sizeof(nic.netdev), "%s", argv[2]);
	snprintf(nic.rdma.device, sizeof(nic.rdma.device), "%s", argv[4]);
	nic.rdma.port = 1;
	nic.rdma.active = true;
	nic.rdma.link_layer = MESH_LINK_LAYER_ETHERNET;
	if (mesh_addr_parse(argv[3], &nic.source) || mesh_domain_open(&options, &domain))
		fail("no domain");
}

static void remote_open(const struct card *card)
{
	if (mesh_remote_open(domain, card->name, card->name_len, &remote))
		fail("no remote");
}

static void write_ended(struct mesh_op *op, int error)
{
	struct end *end = (struct end *)op;

	end->done = true;
	end->error = error;
}

/* Writes the whole memory over there; returns how it ended. */
static int write_there(const struct card *card, struct mesh_mr *mr)
{
	uint64_t deadline = mesh_clock_ms() + STEP_MS;
	struct end end = {.op.complete = write_ended};
	struct mesh_write write = {
		.data = memory,
		.size = MEMORY_BYTES,
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

static int sender(void)
{
	struct card mine = {.name_len = domain->name_len}, theirs, ignored;
	struct mesh_mr *mr;
	int ret;

	memcpy(mine.name, domain->name, domain->name_len);
	card_put("sender", &mine);
	card_get("receiver", &theirs);
	remote_open(&theirs);
	if (mesh_mr_open(domain, memory, MEMORY_BYTES, &mr))
		fail("no registration");
	memset(memory, 1, MEMORY_BYTES);
	if (write_there(&theirs, mr))
		fail("the first write did not succeed");
	card_put("written", &mine);
	card_get("taken_back", &ignored);
	memset(memory, 2, MEMORY_BYTES);
	ret = write_there(&theirs, mr);
	printf("late write: %s\n", ret ? strerror(-ret) : "success");
	card_put("late", &mine);
	card_get("seen", &ignored);
	mesh_mr_close(mr);
	return 0;
}

static void take_back(const char *how, struct mesh_mr **mr)
{
	struct mesh_fence fence = {.domain = domain, .remote = remote};

	if (!strcmp(how, "fence"))
		mesh_remotes_fence(&fence, 1);
	if (strcmp(how, "close") && strcmp(how, "cached"))
		return;
	mesh_mr_close(*mr);
	*mr = NULL;
}

static int receiver(const char *how)
{
	struct card mine = {.name_len = domain->name_len}, theirs, ignored;
	bool promised = !strcmp(how, "open"), arrived;
	uint64_t until;
	struct mesh_mr *mr;

	if (!strcmp(how, "cached"))
		domain->mr_flags = 0;
	memcpy(mine.name, domain->name, domain->name_len);
	card_get("sender", &theirs);
	remote_open(&theirs);
	if (mesh_mr_open(domain, memory, MEMORY_BYTES, &mr))
		fail("no registration");
	mine.address = mesh_mr_remote_address(mr, memory);
	mine.key = mesh_mr_key(mr);
	card_put("receiver", &mine);
	card_get("written", &ignored);
	if (memory[0] != 1 || memory[MEMORY_BYTES - 1] != 1)
		fail("the first write did not arrive");
	take_back(how, &mr);
	memset(memory, 0, MEMORY_BYTES); /* reused */
	card_put("taken_back", &mine);
	card_get("late", &ignored);
	for (until = mesh_clock_ms() + LOOK_MS; mesh_clock_ms() < until;)
		turn();
	arrived = memory[0] || memory[MEMORY_BYTES - 1];
	printf("late write: %s\n", arrived ? "arrived" : "refused");
	card_put("seen", &mine);
	mesh_mr_close(mr);
	return strcmp(how, "cached") && arrived != promised;
}

int main(int argc, char **argv)
{
	int ret;

	if (argc != 7) {
		fprintf(stderr,
			"usage: %s receiver|sender NETDEV ADDRESS DEVICE FOLDER "
			"close|fence|cached|open\n",
			argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	mesh_log_sink_set(log_print);
	folder = argv[5];
	memory = aligned_alloc(MEMORY_BYTES, MEMORY_BYTES);
	if (!memory)
		return 1;
	domain_open(argv);
	ret = strcmp(argv[1], "sender") ? receiver(argv[6]) : sender();
	mesh_remote_close(domain, remote);
	mesh_domain_close(domain);
	free(memory);
	return ret;
}
