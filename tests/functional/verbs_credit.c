/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs_credit.c - closes a domain, or its endpoint, while the provider's own messages wait unread
 * in its completion queue. Two processes on one cable of RDMA NICs.
 *
 * Usage: verbs_credit receiver|sender NETDEV ADDRESS DEVICE FOLDER domain|endpoint|peer
 *
 * domain    the sender closes its domain
 * endpoint  it closes the endpoint, as when a link is lost, and then the domain
 * peer      the receiver closes its domain first, and the sender polls again
 *
 * For every 64 messages the receiver's provider returns credits in a message of its own. The
 * sender does not poll after it has sent, and closes: libfabric up to 2.6 reads such a message once
 * more while it closes a connection, for an endpoint that it has freed, and crashes.
 *
 * Exit status 0 if the sender has closed, and the receiver had its writes.
 */
#include "fabric/endpoint.h"
#include "verbs_pair.h"

#define WORD_BYTES 8
/* Fewer than the receives that the provider posts, 128: no write waits for credits. */
#define WRITES 100
/* The receiver polls so often, so that its provider returns credits. */
#define POLLS 300

static uint64_t word;

static void nap(void)
{
	pause_ms(1);
}

static int sender(const char *how)
{
	struct card theirs, ignored, mine = card_own();
	struct mesh_mr *mr;

	card_put("sender", &mine);
	card_get("receiver", &theirs);
	remote_open(&theirs);
	if (mesh_mr_open(domain, &word, WORD_BYTES, &mr))
		fail("no registration");
	for (int i = 0; i < WRITES; i++) {
		word = (uint64_t)i + 1;
		if (write_there(&theirs, mr, &word, WORD_BYTES))
			fail("a write did not succeed");
	}
	card_put("written", &mine);
	card_await("polled", &ignored, nap);
	mesh_mr_close(mr);
	if (!strcmp(how, "endpoint"))
		mesh_endpoint_close(domain);
	if (strcmp(how, "peer") != 0)
		return 0;
	card_await("closed", &ignored, nap);
	for (int i = 0; i < POLLS; i++)
		turn();
	return 0;
}

static int receiver(void)
{
	struct card theirs, ignored, mine = card_own();
	struct mesh_mr *mr;

	card_get("sender", &theirs);
	remote_open(&theirs);
	if (mesh_mr_open(domain, &word, WORD_BYTES, &mr))
		fail("no registration");
	mine.address = mesh_mr_remote_address(mr, &word);
	mine.key = mesh_mr_key(mr);
	card_put("receiver", &mine);
	/* The first write connects, which takes polls at both ends; the others meet none here. */
	while (!*(volatile uint64_t *)&word)
		turn();
	card_await("written", &ignored, nap);
	for (int i = 0; i < POLLS; i++)
		turn();
	card_put("polled", &mine);
	mesh_mr_close(mr);
	return word != WRITES;
}

int main(int argc, char **argv)
{
	struct card card;
	int ret;

	if (argc != 7) {
		fprintf(stderr,
			"usage: %s receiver|sender NETDEV ADDRESS DEVICE FOLDER "
			"domain|endpoint|peer\n",
			argv[0]);
		return 2;
	}
	domain_open(argv);
	card = card_own();
	ret = strcmp(argv[1], "sender") ? receiver() : sender(argv[6]);
	mesh_remote_close(domain, remote);
	mesh_domain_close(domain);
	if (!strcmp(argv[1], "receiver"))
		card_put("closed", &card);
	return ret;
}
