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
 *
 * Prints "late write: arrived" or "late write: refused" (receiver), "late write: STATUS" (sender).
 * Exit status 0 if what HOW promises has come true.
 */
#include <unistd.h>

#include "fabric/fence.h"
#include "verbs_pair.h"

#define MEMORY_BYTES 65536
/* How long the receiver looks for the late write after the sender has seen its end. */
#define LOOK_MS 500

static char *memory;

static int sender(void)
{
	struct card mine = card_own(), theirs, ignored;
	struct mesh_mr *mr;
	int ret;

	card_put("sender", &mine);
	card_get("receiver", &theirs);
	remote_open(&theirs);
	if (mesh_mr_open(domain, memory, MEMORY_BYTES, &mr))
		fail("no registration");
	memset(memory, 1, MEMORY_BYTES);
	if (write_there(&theirs, mr, memory, MEMORY_BYTES))
		fail("the first write did not succeed");
	card_put("written", &mine);
	card_get("taken_back", &ignored);
	memset(memory, 2, MEMORY_BYTES);
	ret = write_there(&theirs, mr, memory, MEMORY_BYTES);
	printf("late write: %s\n", ret ? strerror(-ret) : "success");
	card_put("late", &mine);
	card_get("seen", &ignored);
	mesh_mr_close(mr);
	return 0;
}

static void take_back(const char *how, struct mesh_mr **mr)
{
	struct mesh_fence *fence = strcmp(how, "fence") ? NULL : mesh_fence_begin(domain, remote);

	while (fence && mesh_fence_step(fence) == -EAGAIN)
		usleep(500);
	if (strcmp(how, "close") && strcmp(how, "cached"))
		return;
	mesh_mr_close(*mr);
	*mr = NULL;
}

static int receiver(const char *how)
{
	struct card mine = card_own(), theirs, ignored;
	bool promised = !strcmp(how, "open"), arrived;
	struct mesh_mr *mr;

	if (!strcmp(how, "cached"))
		domain->mr_flags = 0;
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
	for (uint64_t until = mesh_clock_ms() + LOOK_MS; mesh_clock_ms() < until;)
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
