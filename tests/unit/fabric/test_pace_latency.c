/* SPDX-License-Identifier: Apache-2.0 */
/* test_pace_latency.c - what the latency of links decides, and what it does not. */
#include "fabric/pace.h"

#include "links.h"

/* Messages of 8 bytes among 1000 that go over each of two quiet links. */
static void messages_go(int *used)
{
	int i;

	used[0] = used[1] = 0;
	for (i = 0; i < 1000; i++)
		used[mesh_pace_choose_for_message(mesh.paces, 2, 8, mesh.rotation++,
						  mesh.now_ns)]++;
}

/* Two links of 100 Gbit/s. */
static void two_links_make(uint64_t delay_ns, uint64_t other_delay_ns)
{
	static const uint64_t rates[] = {100 * GBIT, 100 * GBIT};

	links_make(2, rates);
	mesh.links[0].delay_ns = delay_ns;
	mesh.links[1].delay_ns = other_delay_ns;
}

/* So many short writes on each link, one at a time. */
static void trips(int count)
{
	int i, k;

	for (i = 0; i < count; i++) {
		for (k = 0; k < 2; k++) {
			link_post(&mesh.links[k], 16 << 10);
			links_wait_completion();
		}
	}
}

/* Of 1000 messages this many take the first of two links with these first estimates. */
static int first_link_takes(uint64_t hint_ns, uint64_t other_hint_ns)
{
	int used[2];

	two_links_make(0, 0);
	mesh_pace_hint(&mesh.links[0].pace, hint_ns);
	mesh_pace_hint(&mesh.links[1].pace, other_hint_ns);
	messages_go(used);
	return used[0];
}

/* Small messages take the link with the lowest latency, and turns where it makes no difference. */
TEST(latency_first_estimate)
{
	assert_int_equal(first_link_takes(2000, 200000), 1000);
	assert_int_equal(first_link_takes(200000, 2000), 0);
	assert_int_equal(first_link_takes(30000, 55000), 500);
	assert_int_equal(first_link_takes(2000, 0), 500); /* nothing is known of one of them */
}

/* Completions show it as well, and its changes. */
TEST(latency_is_measured)
{
	int used[2];

	two_links_make(2000, 200000);
	trips(1);
	messages_go(used);
	assert_int_equal(used[0], 1000);
	mesh.links[0].delay_ns = 200000; /* for example another route */
	mesh.links[1].delay_ns = 2000;
	trips(16);
	messages_go(used);
	assert_int_equal(used[1], 1000);
}

/* Late polls lengthen single trips, and not the estimate of the link. */
TEST(latency_outliers)
{
	int used[2];

	two_links_make(2000, 2000);
	trips(1);
	mesh.links[1].delay_ns = 5 * MS;
	trips(7);
	messages_go(used);
	assert_int_equal(used[0], 500);
}

/* A hint is TCP's round trip: one that RDMA has shown is not compared with it. */
TEST(latency_like_with_like)
{
	int used[2];

	two_links_make(2000, 2000);
	mesh_pace_hint(&mesh.links[0].pace, 40000);
	mesh_pace_hint(&mesh.links[1].pace, 45000);
	link_post(&mesh.links[0], 4096);
	links_wait_completion();
	messages_go(used);
	assert_int_equal(used[0], 500);
}

/* Neither long writes nor those that wait behind others show it. */
TEST(latency_of_busy_links)
{
	struct mesh_pace *pace = &mesh.links[0].pace;

	two_links_make(2000, 2000);
	link_post(&mesh.links[0], 4 << 20);
	link_post(&mesh.links[0], 4096);
	links_wait_completion();
	links_wait_completion();
	assert_int_equal(atomic_load(&pace->latency_ns), 0);
	link_post(&mesh.links[0], 4096);
	links_wait_completion();
	assert_in_range(atomic_load(&pace->latency_ns), 1, 4000);
}

/* A segment takes the short link, until that is full: then the other one adds its bandwidth. */
TEST(latency_of_segments)
{
	int i;

	two_links_make(2000, 20 * MS);
	mesh_pace_hint(&mesh.links[0].pace, 2000);
	mesh_pace_hint(&mesh.links[1].pace, 20 * MS);
	for (i = 0; i < (int)MESH_PACE_WINDOW_MIN / (512 << 10); i++) {
		assert_int_equal(
			mesh_pace_choose(mesh.paces, 2, 512 << 10, mesh.rotation++, mesh.now_ns),
			0);
		link_post(&mesh.links[0], 512 << 10);
	}
	assert_int_equal(mesh_pace_choose(mesh.paces, 2, 512 << 10, mesh.rotation++, mesh.now_ns),
			 1);
}

/* What each of two links with these delays carries of a stream, once it runs. */
static void stream_shares(const struct mesh_pace_bounds *bounds, uint64_t delay_ns,
			  uint64_t other_delay_ns)
{
	uint64_t before[2];
	double share;
	int i;

	two_links_make(delay_ns, other_delay_ns);
	for (i = 0; i < 2; i++) {
		mesh_pace_init(&mesh.links[i].pace, 100000, bounds);
		mesh_pace_hint(&mesh.links[i].pace, mesh.links[i].delay_ns);
	}
	links_stream(256 << 20, 512 << 10, 64 << 20);
	for (i = 0; i < 2; i++)
		before[i] = mesh.links[i].carried;
	links_reach(0.95, 1ull << 30, 512 << 10, 64 << 20);
	share = (double)(mesh.links[0].carried - before[0]) /
		(double)(mesh.links[1].carried - before[1]);
	if (share < 0.9 || share > 1.1)
		fail_msg("links of the same rate share a stream %.2f to 1", share);
}

/* High latency does not make a link slow: in a large stream the rate decides. */
TEST(latency_is_not_rate)
{
	stream_shares(&links_tcp, 2000, 2000);
	stream_shares(&links_tcp, 2000, 200000);
	stream_shares(&links_rdma, 2000, 200000);
	stream_shares(&links_tcp, 2000000, 2000);
}

/* The rate of a link that is idle before each write: the latency does not count. */
TEST(rate_of_single_writes)
{
	struct mesh_pace *pace = &mesh.links[0].pace;
	int i;

	links_make(1, (const uint64_t[]){10 * GBIT});
	mesh.links[0].delay_ns = 200000;
	mesh_pace_hint(pace, 200000);
	for (i = 0; i < 200; i++)
		links_stream(512 << 10, 512 << 10, 512 << 10);
	assert_in_range(atomic_load(&pace->rate), 9.8 * GBIT, 10.2 * GBIT);
	/* A hint that is too long does not make the link faster than its NIC. */
	mesh_pace_hint(pace, 10 * MS);
	for (i = 0; i < 200; i++)
		links_stream(512 << 10, 512 << 10, 512 << 10);
	assert_in_range(atomic_load(&pace->rate), 9.8 * GBIT, 10.2 * GBIT);
}
