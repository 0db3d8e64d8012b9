/* SPDX-License-Identifier: Apache-2.0 */
/* test_pace.c - the pace of a flow, and the latency that it is to keep. */
#include "fabric/flow.h"

#include "links.h"

TEST(shares)
{
	static const struct {
		int num;
		uint64_t rates[LINKS_MAX];
	} cases[] = {
		{1, {GBIT}},
		{2, {GBIT, GBIT}},
		{3, {GBIT, GBIT, GBIT}},
		{2, {2 * GBIT, GBIT}},
		{2, {GBIT, 4 * GBIT}},
		{4, {GBIT, 2 * GBIT, 3 * GBIT, 4 * GBIT}},
		{2, {100 * GBIT, 100 * GBIT}},
	};

	FOR_EACH(i, cases) {
		links_make(cases[i].num, cases[i].rates);
		links_reach(0.97, 1ull << 30, 256 << 10, 8 << 20);
		links_make(cases[i].num, cases[i].rates);
		links_reach(0.93, 1ull << 30, 128 << 10, 4 << 20);
	}
}

/* What a link lost it loses alone; when it is back it is used again. */
TEST(drop_and_recovery)
{
	static const uint64_t rates[] = {GBIT, GBIT};
	uint64_t before;
	double ms;

	links_make(2, rates);
	links_stream(100 << 20, 256 << 10, 8 << 20);
	link_rate_change(&mesh.links[1], GBIT / 10);
	before = mesh.links[0].carried;
	ms = links_stream(125 << 20, 256 << 10, 8 << 20);
	/* About a second: the other link's share of it is whole. */
	assert_true((double)(mesh.links[0].carried - before) / ms > 0.9 * GBIT);
	links_reach(0.95, 256 << 20, 256 << 10, 8 << 20);
	link_rate_change(&mesh.links[1], GBIT);
	links_stream(64 << 20, 256 << 10, 8 << 20);
	links_reach(0.97, 512 << 20, 256 << 10, 8 << 20);
}

/* The same with bytes in its queue at the moment of the drop. */
TEST(drop_in_flight)
{
	static const uint64_t rates[] = {GBIT, GBIT};
	uint64_t carried;

	links_make(2, rates);
	links_stream(100 << 20, 256 << 10, 8 << 20);
	for (int i = 0; i < 16; i++)
		link_post(&mesh.links[i % 2], 128 << 10);
	link_rate_change(&mesh.links[1], GBIT / 10);
	carried = mesh.links[0].carried;
	/* A second at the rate of the healthy link. */
	assert_true(links_stream(125 << 20, 256 << 10, 8 << 20) < 1000 * 1.2);
	assert_true(mesh.links[0].carried - carried > (100 << 20));
}

/* A link that completes nothing at all holds up no more than its window. */
TEST(dead_link)
{
	static const uint64_t rates[] = {GBIT, GBIT};
	uint64_t sent = 0;
	int i;

	links_make(2, rates);
	links_stream(100 << 20, 256 << 10, 8 << 20);
	link_rate_change(&mesh.links[1], 1);
	while (sent < (200 << 20)) {
		i = mesh_pace_choose(mesh.paces, 2, 256 << 10, mesh.rotation++, mesh.now_ns);
		if (!mesh_pace_has_room(mesh.paces[i])) {
			assert_true(mesh.links[0].first != mesh.links[0].end);
			links_wait_completion();
			continue;
		}
		link_post(&mesh.links[i], 256 << 10);
		sent += 256 << 10;
	}
	assert_true(mesh_pace_in_flight(mesh.paces[1]) < MESH_PACE_WINDOW_MIN + (256 << 10));
}

/* Small messages on quiet links take turns, though the links are not measured as equal. */
TEST(small_rotate)
{
	static const uint64_t rates[] = {100 * GBIT, 110 * GBIT, 90 * GBIT};
	int used[3] = {0}, i, k;

	links_make(3, rates);
	links_stream(64 << 20, 256 << 10, 8 << 20);
	for (i = 0; i < 300; i++) {
		k = mesh_pace_choose(mesh.paces, 3, 64, mesh.rotation++, mesh.now_ns);
		used[k]++;
	}
	for (i = 0; i < 3; i++)
		assert_in_range(used[i], 90, 110);
}

/* Between two cities: 100 Gbit/s, 10 ms. The window adapts to that. */
TEST(long_way)
{
	static const uint64_t rates[] = {100 * GBIT};

	links_make(1, rates);
	mesh.links[0].delay_ns = 10 * MS;
	links_stream(1ull << 30, 1 << 20, 1ull << 30);
	links_reach(0.9, 4ull << 30, 1 << 20, 1ull << 30);
}

/* One operation may always go, however large; more until the window is full. */
TEST(window)
{
	static const uint64_t rates[] = {GBIT};

	links_make(1, rates);
	assert_true(mesh_pace_has_room(mesh.paces[0]));
	link_post(&mesh.links[0], MESH_PACE_WINDOW_MIN - 1);
	assert_true(mesh_pace_has_room(mesh.paces[0]));
	link_post(&mesh.links[0], 1);
	assert_false(mesh_pace_has_room(mesh.paces[0]));
	links_wait_completion();
	assert_int_equal(mesh_pace_in_flight(mesh.paces[0]), 1);
	link_post(&mesh.links[0], 1ull << 40);
	assert_false(mesh_pace_has_room(mesh.paces[0]));
}

static uint64_t rate_of(struct mesh_pace *pace)
{
	return atomic_load(&pace->rate);
}

/* One write of @bytes that takes @ns. */
static void deliver(struct mesh_pace *pace, uint64_t bytes, uint64_t ns)
{
	uint64_t start_ns = atomic_load(&pace->last_ns) + MS;

	mesh_pace_posted(pace, bytes, start_ns);
	mesh_pace_completed(pace, bytes, start_ns, start_ns + ns);
}

/* What the link carries in a millisecond, within bounds: a thread that polls may be that late. */
TEST(window_follows_the_rate)
{
	static const struct {
		int gbit;
		uint64_t window;
	} cases[] = {{10, 16 << 20}, {200, 25000000}, {400, 32 << 20}};
	struct mesh_pace pace;
	uint64_t window;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mesh_pace_init(&pace, cases[i].gbit * 1000, &links_rdma);
		assert_int_equal(atomic_load(&pace.window), cases[i].window);
	}
	/* It claimed 400 Gbit/s and shows what it does: 160. */
	for (size_t i = 0; i < 2000; i++)
		deliver(&pace, 1 << 20, (1 << 20) / 20);
	window = atomic_load(&pace.window);
	assert_in_range(window, 19900000, 20200000);
	/* A longer path holds more than that. */
	links_make(1, (const uint64_t[]){100 * GBIT});
	mesh_pace_init(&mesh.links[0].pace, 100000, &links_rdma);
	mesh.links[0].delay_ns = 10 * MS;
	links_reach(0.9, 4ull << 30, 1 << 20, 1ull << 30);
}

/* The NIC's reported speed is the first estimate; without it 10 Gbit/s. */
TEST(first_guess)
{
	struct mesh_pace pace;

	mesh_pace_init(&pace, 100000, &links_tcp);
	assert_int_equal(mesh_pace_finish_ns(&pace, 12500000, 1), MS);
	mesh_pace_init(&pace, 0, &links_tcp);
	assert_int_equal(mesh_pace_finish_ns(&pace, 12500000, 1), 10 * MS);
}

/* Since the last completion, or since there is something to complete again. */
TEST(silence)
{
	struct mesh_pace pace;

	mesh_pace_init(&pace, 0, &links_tcp);
	assert_int_equal(mesh_pace_silence_ns(&pace, 99), 0);
	mesh_pace_posted(&pace, 1000, 100);
	mesh_pace_posted(&pace, 1000, 120);
	assert_int_equal(mesh_pace_silence_ns(&pace, 150), 50);
	mesh_pace_completed(&pace, 1000, 100, 200);
	assert_int_equal(mesh_pace_silence_ns(&pace, 230), 30);
	mesh_pace_completed(&pace, 1000, 120, 240);
	assert_int_equal(mesh_pace_silence_ns(&pace, 300), 0);
	mesh_pace_posted(&pace, 1000, 1000);
	assert_int_equal(mesh_pace_silence_ns(&pace, 1010), 10);
	/* A link that completes nothing for longer than its queue should take counts as slower. */
	assert_true(mesh_pace_finish_ns(&pace, 1000, 1000 + 50 * MS) > 50 * MS);
	mesh_pace_forget(&pace, 1000);
	assert_int_equal(mesh_pace_in_flight(&pace), 0);
}

/* A measurement counts once it has bytes or time enough, and one alone does not decide. */
TEST(measurements)
{
	struct mesh_pace pace;
	uint64_t before;

	mesh_pace_init(&pace, 10000, &links_tcp);
	before = rate_of(&pace);
	deliver(&pace, 1000, MS);
	assert_int_equal(rate_of(&pace), before);
	deliver(&pace, 1000, MS); /* 2 ms together */
	assert_true(rate_of(&pace) < before);
	assert_true(rate_of(&pace) > before / 2);
	before = rate_of(&pace);
	deliver(&pace, 1 << 20, MS / 100); /* a MiB */
	assert_true(rate_of(&pace) > before);
	/* However slow, it is never nothing. */
	for (int i = 0; i < 20; i++)
		deliver(&pace, 1, 1000 * MS);
	assert_int_equal(rate_of(&pace), 1);
	assert_true(mesh_pace_finish_ns(&pace, 1, 0) > 0);
}

/* However long and fast a path is, the bytes in flight are bounded. */
TEST(window_is_bounded)
{
	struct mesh_pace pace;

	mesh_pace_init(&pace, 1000000, &links_tcp);
	for (int i = 0; i < 20; i++)
		deliver(&pace, 1ull << 40, 1000 * MS);
	mesh_pace_posted(&pace, MESH_PACE_WINDOW_MAX - 1, 1);
	assert_true(mesh_pace_has_room(&pace));
	mesh_pace_posted(&pace, 1, 1);
	assert_false(mesh_pace_has_room(&pace));
}

/* A slow link is tried when it was measured long ago, and has nothing: not if it never carried. */
TEST(probe)
{
	struct mesh_pace fast, slow;
	const struct mesh_pace *paces[] = {&fast, &slow};
	uint64_t now_ns;

	mesh_pace_init(&fast, 100000, &links_tcp);
	mesh_pace_init(&slow, 100, &links_tcp);
	assert_int_equal(mesh_pace_choose(paces, 2, 1 << 20, 1, 1000 * MS), 0);
	deliver(&slow, 1000, MS);
	now_ns = atomic_load(&slow.last_ns) + MESH_PACE_PROBE_NS;
	assert_int_equal(mesh_pace_choose(paces, 2, 1 << 20, 1, now_ns), 0);
	assert_int_equal(mesh_pace_choose(paces, 2, 1 << 20, 1, now_ns + 1), 1);
	mesh_pace_posted(&slow, 1000, now_ns);
	assert_int_equal(mesh_pace_choose(paces, 2, 1 << 20, 1, now_ns + 1), 0);
}

/* Messages of 8 bytes among 1000 that go over each of two quiet links. */
static void messages_go(int *used)
{
	used[0] = used[1] = 0;
	for (int i = 0; i < 1000; i++)
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

/* Of 1000 messages this many take the first of two links with these latencies. */
static int first_link_takes(uint64_t latency_ns, uint64_t other_latency_ns)
{
	int used[2];

	two_links_make(0, 0);
	mesh_pace_latency_set(&mesh.links[0].pace, latency_ns);
	mesh_pace_latency_set(&mesh.links[1].pace, other_latency_ns);
	messages_go(used);
	return used[0];
}

/* Small messages take the link with the lowest latency, and turns where it makes no difference. */
TEST(latency_of_messages)
{
	assert_int_equal(first_link_takes(2000, 200000), 1000);
	assert_int_equal(first_link_takes(200000, 2000), 0);
	assert_int_equal(first_link_takes(30000, 55000), 500);
}

/* A segment takes the short link, until that is full: then the other one adds its bandwidth. */
TEST(latency_of_segments)
{
	two_links_make(2000, 20 * MS);
	mesh_pace_latency_set(&mesh.links[0].pace, 2000);
	mesh_pace_latency_set(&mesh.links[1].pace, 20 * MS);
	for (int i = 0; i < (int)MESH_PACE_WINDOW_MIN / (512 << 10); i++) {
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

	two_links_make(delay_ns, other_delay_ns);
	for (int i = 0; i < 2; i++) {
		mesh_pace_init(&mesh.links[i].pace, 100000, bounds);
		mesh_pace_latency_set(&mesh.links[i].pace, mesh.links[i].delay_ns);
	}
	links_stream(256 << 20, 512 << 10, 64 << 20);
	for (int i = 0; i < 2; i++)
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

	links_make(1, (const uint64_t[]){10 * GBIT});
	mesh.links[0].delay_ns = 200000;
	mesh_pace_latency_set(pace, 200000);
	for (int i = 0; i < 200; i++)
		links_stream(512 << 10, 512 << 10, 512 << 10);
	assert_in_range(atomic_load(&pace->rate), 9.8 * GBIT, 10.2 * GBIT);
	/* A hint that is too long does not make the link faster than its NIC. */
	mesh_pace_latency_set(pace, 10 * MS);
	for (int i = 0; i < 200; i++)
		links_stream(512 << 10, 512 << 10, 512 << 10);
	assert_in_range(atomic_load(&pace->rate), 9.8 * GBIT, 10.2 * GBIT);
}
