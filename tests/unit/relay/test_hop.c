/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_hop.c - segments in the memory of the next relay: their granules are in use until the write
 * is complete and the receiver has the segment, whichever comes first, or the circuit is broken.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <rdma/fi_errno.h>

#include "base/lock.h"
#include "fabric/mr.h"
#include "fabric/remote.h"
#include "relay/hop.h"

#include "fake_fabric.h"
#include "log_capture.h"

#define GRANULE 4096
#define ADDRESS 0x100000
#define KEY 55
#define THEIR_ADDRESS 0x7000
#define THEIR_KEY 66

static struct mesh_domain *domain;
static struct mesh_remote *remote;
static struct mesh_mr *mr;
static struct mesh_hop hop;
static char memory[4 * GRANULE];
static char owner;
/* What the latest written() was told. */
static struct mesh_hop_segment *written;
static struct mesh_buffer *unsent;
static bool done;

MESH_NOT_ANALYSED
static void written_note(struct mesh_hop_segment *segment, int error)
{
	written = segment;
	done = mesh_hop_written(segment, error, &unsent);
}

static int setup(void **state)
{
	const struct mesh_frame_opened opened = {
		.address = ADDRESS, .key = KEY, .granule = GRANULE, .limit = MESH_GRANULES};

	(void)state;
	fake_reset();
	domain = fake_domain_open(MESH_PROVIDER_TCP);
	remote = fake_remote_open(domain, 4321);
	assert_int_equal(mesh_mr_open(domain, memory, sizeof(memory), &mr), 0);
	memset(&hop, 0, sizeof(hop));
	hop.domain = domain;
	hop.remote = remote;
	hop.written = written_note;
	assert_int_equal(mesh_hop_open(&hop, &opened), 0);
	written = NULL;
	unsent = NULL;
	done = false;
	log_capture_start();
	return 0;
}

static int teardown(void **state)
{
	log_capture_stop();
	mesh_hop_close(&hop);
	mesh_mr_close(mr);
	mesh_remote_close(domain, remote);
	mesh_domain_close(domain);
	return fake_teardown(state);
}

/* Starts to write a segment of this size; returns as mesh_hop_write(). */
static int segment_write(size_t size)
{
	struct mesh_write write = {
		.data = memory,
		.size = size,
		.mr = mr,
		.address = THEIR_ADDRESS,
		.key = THEIR_KEY,
		.behind = mesh_remote_buffer_get(domain, remote),
	};
	int ret;

	assert_non_null(write.behind);
	write.behind->size =
		sizeof(struct mesh_message_header) + sizeof(struct mesh_message_relayed);
	ret = mesh_hop_write(&hop, &write, &owner);
	if (ret)
		write.behind->op.complete(&write.behind->op, ret);
	return ret;
}

static const struct fake_post *last_write(void)
{
	return &fake.writes.posts[fake.writes.num - 1];
}

/* The latest write is complete, or has failed with this FI_E*. */
static void write_ends(int error)
{
	if (error)
		fake_complete_error(last_write()->context, error);
	else
		fake_complete(last_write());
	assert_true(mesh_domain_poll(domain));
	assert_non_null(written);
}

/* Of the message that was sent as this one. */
static struct mesh_message_relayed relayed_of(int i)
{
	struct mesh_message_relayed relayed;

	memcpy(&relayed, fake.sends.posts[i].bytes + sizeof(struct mesh_message_header),
	       sizeof(relayed));
	return relayed;
}

/* The write leads into the relay's memory; RELAYED has where the segment is to go in the end. */
static void test_addresses(void **state)
{
	struct mesh_message_relayed relayed;

	(void)state;
	assert_int_equal(segment_write(100), 0);
	assert_int_equal(segment_write(GRANULE + 1), 0);
	assert_int_equal(fake.writes.num, 2);
	assert_int_equal(fake.writes.posts[0].address, ADDRESS);
	assert_int_equal(fake.writes.posts[1].address, ADDRESS + GRANULE);
	assert_int_equal(fake.writes.posts[1].key, KEY);
	assert_int_equal(hop.writes, 2);
	assert_int_equal(fake.sends.num, 2);
	relayed = relayed_of(1);
	assert_int_equal(relayed.address, THEIR_ADDRESS);
	assert_int_equal(relayed.key, THEIR_KEY);
	assert_int_equal(relayed.length, GRANULE + 1);
	assert_int_equal(relayed.granule, 1);
}

/* Complete, then arrived. */
static void test_written_first(void **state)
{
	struct mesh_hop_segment *segment;

	(void)state;
	assert_int_equal(segment_write(2 * GRANULE), 0);
	write_ends(0);
	assert_false(done);
	assert_null(unsent);
	assert_int_equal(hop.area.used, 3);
	segment = mesh_hop_arrived(&hop, 0);
	assert_ptr_equal(segment, written);
	assert_ptr_equal(segment->owner, &owner);
	assert_int_equal(mesh_hop_finish(segment), 0);
	assert_int_equal(hop.area.used, 0);
}

/* Arrived, then complete: the provider still has the buffer meanwhile. */
static void test_arrived_first(void **state)
{
	(void)state;
	assert_int_equal(segment_write(GRANULE), 0);
	assert_null(mesh_hop_arrived(&hop, 0));
	assert_int_equal(hop.area.used, 1);
	write_ends(0);
	assert_true(done);
	assert_int_equal(mesh_hop_finish(written), 0);
	assert_int_equal(hop.area.used, 0);
}

/* What a peer reports is not trusted: nothing there, twice, not the first granule. */
static void test_arrived_wrong(void **state)
{
	struct mesh_hop closed = {0};
	unsigned int i;

	(void)state;
	assert_null(mesh_hop_arrived(&closed, 0));
	for (i = 0; i < MESH_GRANULES; i++)
		assert_null(mesh_hop_arrived(&hop, i));
	assert_int_equal(segment_write(2 * GRANULE), 0);
	write_ends(0);
	assert_null(mesh_hop_arrived(&hop, 1));
	assert_non_null(mesh_hop_arrived(&hop, 0));
	assert_null(mesh_hop_arrived(&hop, 0));
	mesh_hop_finish(written);
	assert_null(mesh_hop_arrived(&hop, 0));
}

/* Beyond the limit nothing is written; the next write reports that it was short of memory. */
static void test_limit(void **state)
{
	const struct mesh_message_arrived more = {.limit = 3}, fewer = {.limit = 1};

	(void)state;
	hop.limit = 2;
	assert_false(mesh_hop_has_room(&hop, 2 * GRANULE + 1));
	assert_true(mesh_hop_has_room(&hop, 2 * GRANULE));
	assert_int_equal(segment_write(GRANULE), 0);
	assert_int_equal(segment_write(GRANULE), 0);
	assert_int_equal(segment_write(GRANULE), -EAGAIN);
	assert_true(relayed_of(0).wants);
	assert_false(relayed_of(1).wants);
	mesh_hop_limit_raise(&hop, &more);
	mesh_hop_limit_raise(&hop, &fewer);
	assert_int_equal(hop.area.used, 3);
	assert_int_equal(segment_write(GRANULE), 0);
	assert_int_equal(fake.writes.posts[2].address, ADDRESS + 2 * GRANULE);
	assert_false(mesh_hop_has_room(&hop, 1));
}

/* A write that the provider does not take leaves nothing in use. */
static void test_refused(void **state)
{
	(void)state;
	fake_fail(FAKE_WRITE, 0, 1, -FI_EAGAIN);
	assert_int_equal(segment_write(GRANULE), -EAGAIN);
	assert_int_equal(hop.area.used, 0);
	assert_int_equal(hop.writes, 0);
	assert_null(mesh_hop_arrived(&hop, 0));
	assert_true(mesh_hop_has_room(&hop, MESH_GRANULES * GRANULE));
	assert_false(mesh_hop_has_room(&hop, MESH_GRANULES * GRANULE + 1));
	hop.area.used = UINT64_MAX;
	assert_false(mesh_hop_has_room(&hop, 1));
	assert_int_equal(segment_write(1), -EAGAIN);
	assert_int_equal(fake.writes.num, 0);
}

/* A write that fails ends its segment at once: ARRIVED never comes. */
static void test_failed(void **state)
{
	(void)state;
	assert_int_equal(segment_write(GRANULE), 0);
	write_ends(FI_ECONNRESET);
	assert_true(done);
	assert_true(mesh_hop_finish(written) < 0);
	assert_int_equal(hop.area.used, 0);
}

/* RELAYED that the provider refuses waits for the write, and is the caller's if that fails. */
static void test_behind(void **state)
{
	(void)state;
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	assert_int_equal(segment_write(GRANULE), 0);
	assert_int_equal(fake.sends.num, 0);
	write_ends(0);
	assert_null(unsent);
	assert_int_equal(fake.sends.num, 1);
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	assert_int_equal(segment_write(GRANULE), 0);
	write_ends(FI_ECONNRESET);
	assert_non_null(unsent);
	unsent->op.complete(&unsent->op, -ECONNRESET);
	assert_int_equal(fake.sends.num, 1);
}

/* A broken circuit: what is complete ends now, the rest when the provider is done with it. */
static void test_abandon(void **state)
{
	struct mesh_hop_segment *first;

	(void)state;
	assert_int_equal(segment_write(GRANULE), 0);
	write_ends(0);
	first = written;
	assert_int_equal(segment_write(GRANULE), 0);
	assert_ptr_equal(mesh_hop_abandon(&hop, -ECONNRESET), first);
	assert_int_equal(mesh_hop_finish(first), -ECONNRESET);
	assert_null(mesh_hop_abandon(&hop, -ECONNRESET));
	assert_int_equal(hop.area.used, 2);
	write_ends(0);
	assert_true(done);
	assert_int_equal(mesh_hop_finish(written), -ECONNRESET);
	assert_int_equal(hop.area.used, 0);
	assert_null(mesh_hop_abandon(&hop, -EIO));
}

/*
 * The NIC may report a write when the peer is long freed: a fence has timed out. RELAYED, which the
 * provider did not accept then, fails.
 */
static void test_remote_closed(void **state)
{
	struct mesh_flow *flow = remote->flow;

	(void)state;
	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	assert_int_equal(segment_write(GRANULE), 0);
	assert_int_equal(segment_write(GRANULE), 0);
	mesh_remote_close(domain, remote);
	remote = NULL;
	fake_complete(&fake.writes.posts[0]);
	fake_complete(&fake.writes.posts[1]);
	fake_complete(&fake.sends.posts[0]);
	assert_true(mesh_domain_poll(domain));
	assert_true(mesh_domain_poll(domain)); /* the backlog */
	assert_int_equal(fake.sends.num, 1);
	assert_int_equal(mesh_pace_in_flight(&flow->pace), 0);
	assert_false(LIST_EMPTY(&domain->ended));
	mesh_remote_close(domain, fake_remote_open(domain, 1)); /* frees it, too */
	assert_true(LIST_EMPTY(&domain->ended) && LIST_EMPTY(&domain->flows));
	mesh_hop_finish(written);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arrived_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arrived_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abandon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remote_closed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
