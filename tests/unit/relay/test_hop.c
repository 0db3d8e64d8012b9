/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_hop.c - segments in the memory of the next relay, whose NIC reports them late.
 */
#include <rdma/fi_errno.h>

#include "base/lock.h"
#include "fabric/mr.h"
#include "fabric/remote.h"
#include "relay/hop.h"

#include "fake_fabric.h"
#include "log_capture.h"
#include "unit.h"

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
/* What came of the latest written(). */
static struct mesh_buffer *unsent;
static bool done;

MESH_NOT_ANALYSED
static void written_note(struct mesh_hop_segment *segment, int error)
{
	done = mesh_hop_written(segment, &error, &unsent) == &owner && !error;
}

/* @opened: of the next relay; NULL: the hop leads to the receiver. */
static void hop_setup(const struct mesh_frame_opened *opened)
{
	fake_reset();
	domain = fake_domain_open(MESH_PROVIDER_TCP);
	remote = fake_remote_open(domain, 4321);
	assert_int_equal(mesh_mr_open(domain, memory, sizeof(memory), &mr), 0);
	memset(&hop, 0, sizeof(hop));
	hop.domain = domain;
	hop.remote = remote;
	hop.written = written_note;
	assert_int_equal(mesh_hop_open(&hop, opened), 0);
	unsent = NULL;
	done = false;
	log_capture_start();
}

static void setup(void)
{
	const struct mesh_frame_opened opened = {
		.address = ADDRESS, .key = KEY, .granule = GRANULE};

	hop_setup(&opened);
}

static void hop_to_receiver(void)
{
	hop_setup(NULL);
}

static void teardown(void)
{
	mesh_hop_close(&hop);
	mesh_mr_close(mr);
	mesh_remote_close(domain, remote);
	mesh_domain_close(domain);
	fake_teardown();
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

/*
 * The NIC may report a write when the peer is long freed: a fence has timed out. RELAYED, which the
 * provider did not accept then, fails.
 */
TEST_WITH(remote_closed, setup, teardown)
{
	struct mesh_flow *flow = remote->flow;

	fake_fail(FAKE_SEND, 0, 1, -FI_EAGAIN);
	assert_int_equal(segment_write(GRANULE), 0);
	assert_int_equal(segment_write(GRANULE), 0);
	mesh_remote_close(domain, remote);
	remote = NULL;
	fake_complete(&fake.writes.posts[0]);
	fake_complete(&fake.writes.posts[1]);
	fake_complete(&fake.sends.posts[0]);
	for (int i = 0; i < 2; i++) /* what is done, then the backlog */
		assert_true(mesh_domain_poll(domain));
	assert_int_equal(fake.sends.num, 1);
	assert_int_equal(mesh_pace_in_flight(&flow->pace), 0);
	assert_false(LIST_EMPTY(&domain->ended));
	mesh_remote_close(domain, fake_remote_open(domain, 1)); /* frees it, too */
	assert_true(LIST_EMPTY(&domain->ended) && LIST_EMPTY(&domain->flows));
}

/* The first write completes, and with it its segment. */
static void write_completes(void)
{
	fake_complete(&fake.writes.posts[0]);
	assert_true(mesh_domain_poll(domain));
	assert_true(done);
}

/* ARRIVED comes before the write is complete: its completion ends the segment. */
TEST_WITH(arrived_before_written, setup, teardown)
{
	uint64_t granules = 1;

	assert_int_equal(segment_write(2 * GRANULE), 0);
	assert_null(mesh_hop_arrived(&hop, &granules));
	assert_int_equal(hop.used, 3);
	write_completes();
	assert_int_equal(hop.used, 0);
}

/* A write to the receiver goes where its grant says, and has arrived when it is complete. */
TEST_WITH(to_the_receiver, hop_to_receiver, teardown)
{
	assert_int_equal(segment_write(sizeof(memory)), 0);
	assert_int_equal(fake.writes.posts[0].address, THEIR_ADDRESS);
	assert_int_equal(fake.writes.posts[0].key, THEIR_KEY);
	write_completes();
}
