/* SPDX-License-Identifier: Apache-2.0 */
/* test_pace.c - links that are simulated: what a stream over several of them gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/pace.h"

#define MS 1000000ull
#define LINKS_MAX 4
#define QUEUE_MAX 4096
#define GBIT 125000ull /* bytes in a millisecond */

/* A link delivers bytes in order, at its rate, and completes them @delay_ns later. */
struct link {
	struct mesh_pace pace;
	uint64_t rate; /* bytes in a millisecond */
	uint64_t delay_ns;
	struct {
		uint64_t bytes, posted_ns, sent_ns;
	} queue[QUEUE_MAX];
	unsigned int first, end;
	uint64_t free_ns; /* when the last byte given to it has left */
	uint64_t carried; /* bytes */
};

struct mesh {
	struct link links[LINKS_MAX];
	const struct mesh_pace *paces[LINKS_MAX];
	int num;
	uint64_t now_ns;
	uint32_t rotation;
};

static struct mesh mesh;

/* What the processor's cache bounds, and what it does not. */
static const struct mesh_pace_bounds tcp = {MESH_PACE_WINDOW_MIN, MESH_PACE_WINDOW_MIN};
static const struct mesh_pace_bounds rdma = {16 << 20, 32 << 20};

static void links_make(int num, const uint64_t *rates)
{
	int i;

	memset(&mesh, 0, sizeof(mesh));
	mesh.num = num;
	mesh.now_ns = 12345 * MS;
	for (i = 0; i < num; i++) {
		mesh.links[i].rate = rates[i];
		mesh.links[i].delay_ns = 50000;
		mesh_pace_init(&mesh.links[i].pace, 10000, &tcp);
		mesh.paces[i] = &mesh.links[i].pace;
	}
}

static void post(struct link *link, uint64_t bytes)
{
	uint64_t start = link->free_ns > mesh.now_ns ? link->free_ns : mesh.now_ns;
	unsigned int slot = link->end++ % QUEUE_MAX;

	assert_true(link->end - link->first <= QUEUE_MAX);
	mesh_pace_posted(&link->pace, bytes, mesh.now_ns);
	link->free_ns = start + bytes * MS / link->rate;
	link->queue[slot].bytes = bytes;
	link->queue[slot].posted_ns = mesh.now_ns;
	link->queue[slot].sent_ns = link->free_ns + link->delay_ns;
}

/* A link that changes its rate with bytes in its queue sends them at the new rate. */
static void rate_change(struct link *link, uint64_t rate)
{
	uint64_t at = mesh.now_ns;
	unsigned int i;

	link->rate = rate;
	for (i = link->first; i != link->end; i++) {
		at += link->queue[i % QUEUE_MAX].bytes * MS / rate;
		link->queue[i % QUEUE_MAX].sent_ns = at + link->delay_ns;
	}
	link->free_ns = at;
}

/* Time goes on until the next completion. */
static void wait_completion(void)
{
	struct link *next = NULL;
	unsigned int slot;
	int i;

	for (i = 0; i < mesh.num; i++) {
		struct link *link = &mesh.links[i];

		if (link->first != link->end &&
		    (!next || link->queue[link->first % QUEUE_MAX].sent_ns <
				      next->queue[next->first % QUEUE_MAX].sent_ns))
			next = link;
	}
	assert_non_null(next);
	slot = next->first++ % QUEUE_MAX;
	if (next->queue[slot].sent_ns > mesh.now_ns)
		mesh.now_ns = next->queue[slot].sent_ns;
	next->carried += next->queue[slot].bytes;
	mesh_pace_round_trip(&next->pace, next->queue[slot].bytes, next->queue[slot].posted_ns,
			     mesh.now_ns);
	mesh_pace_completed(&next->pace, next->queue[slot].bytes, next->queue[slot].posted_ns,
			    mesh.now_ns);
}

static uint64_t in_flight(void)
{
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < mesh.num; i++)
		bytes += mesh_pace_in_flight(mesh.paces[i]);
	return bytes;
}

/*
 * Sends @total bytes in segments, at most @ahead of them not complete, as the sender does.
 * Returns the milliseconds that it took.
 */
static double stream(uint64_t total, uint64_t segment, uint64_t ahead)
{
	uint64_t started_ns = mesh.now_ns, sent = 0;
	int i;

	while (sent < total) {
		i = mesh_pace_choose(mesh.paces, mesh.num, segment, mesh.rotation++, mesh.now_ns);
		if (in_flight() + segment > ahead || !mesh_pace_has_room(mesh.paces[i], segment)) {
			wait_completion();
			continue;
		}
		post(&mesh.links[i], segment);
		sent += segment;
	}
	while (in_flight())
		wait_completion();
	return (double)(mesh.now_ns - started_ns) / (double)MS;
}

/* Bytes in a millisecond that all links together would carry. */
static double sum(void)
{
	double rate = 0;
	int i;

	for (i = 0; i < mesh.num; i++)
		rate += (double)mesh.links[i].rate;
	return rate;
}

static void reaches(double share, uint64_t total, uint64_t segment, uint64_t ahead)
{
	double ms = stream(total, segment, ahead), got = (double)total / ms / sum();

	if (got < share)
		fail_msg("%.3f of the sum of the links, not %.3f", got, share);
}

static void test_shares(void **state)
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
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		links_make(cases[i].num, cases[i].rates);
		reaches(0.97, 1ull << 30, 256 << 10, 8 << 20);
		links_make(cases[i].num, cases[i].rates);
		reaches(0.93, 1ull << 30, 128 << 10, 4 << 20);
	}
}

/* What a link lost it loses alone; when it is back it is used again. */
static void test_drop_and_recovery(void **state)
{
	static const uint64_t rates[] = {GBIT, GBIT};
	uint64_t before;
	double ms;

	(void)state;
	links_make(2, rates);
	stream(100 << 20, 256 << 10, 8 << 20);
	rate_change(&mesh.links[1], GBIT / 10);
	before = mesh.links[0].carried;
	ms = stream(125 << 20, 256 << 10, 8 << 20);
	/* About a second: the other link's share of it is whole. */
	assert_true((double)(mesh.links[0].carried - before) / ms > 0.9 * GBIT);
	reaches(0.95, 256 << 20, 256 << 10, 8 << 20);
	rate_change(&mesh.links[1], GBIT);
	stream(64 << 20, 256 << 10, 8 << 20);
	reaches(0.97, 512 << 20, 256 << 10, 8 << 20);
}

/* The same with bytes in its queue at the moment of the drop. */
static void test_drop_in_flight(void **state)
{
	static const uint64_t rates[] = {GBIT, GBIT};
	uint64_t carried;
	int i;

	(void)state;
	links_make(2, rates);
	stream(100 << 20, 256 << 10, 8 << 20);
	for (i = 0; i < 16; i++)
		post(&mesh.links[i % 2], 128 << 10);
	rate_change(&mesh.links[1], GBIT / 10);
	carried = mesh.links[0].carried;
	/* A second at the rate of the healthy link. */
	assert_true(stream(125 << 20, 256 << 10, 8 << 20) < 1000 * 1.2);
	assert_true(mesh.links[0].carried - carried > (100 << 20));
}

/* A link that completes nothing at all holds up no more than its window. */
static void test_dead_link(void **state)
{
	static const uint64_t rates[] = {GBIT, GBIT};
	uint64_t sent = 0;
	int i;

	(void)state;
	links_make(2, rates);
	stream(100 << 20, 256 << 10, 8 << 20);
	rate_change(&mesh.links[1], 1);
	while (sent < (200 << 20)) {
		i = mesh_pace_choose(mesh.paces, 2, 256 << 10, mesh.rotation++, mesh.now_ns);
		if (!mesh_pace_has_room(mesh.paces[i], 256 << 10)) {
			assert_true(mesh.links[0].first != mesh.links[0].end);
			wait_completion();
			continue;
		}
		post(&mesh.links[i], 256 << 10);
		sent += 256 << 10;
	}
	assert_true(mesh_pace_in_flight(mesh.paces[1]) <= MESH_PACE_WINDOW_MIN);
}

/* Small messages on quiet links take turns, though the links are not measured as equal. */
static void test_small_rotate(void **state)
{
	static const uint64_t rates[] = {100 * GBIT, 110 * GBIT, 90 * GBIT};
	int used[3] = {0}, i, k;

	(void)state;
	links_make(3, rates);
	stream(64 << 20, 256 << 10, 8 << 20);
	for (i = 0; i < 300; i++) {
		k = mesh_pace_choose(mesh.paces, 3, 64, mesh.rotation++, mesh.now_ns);
		used[k]++;
	}
	for (i = 0; i < 3; i++)
		assert_in_range(used[i], 90, 110);
}

/* Between two cities: 100 Gbit/s, 10 ms. The window adapts to that. */
static void test_long_way(void **state)
{
	static const uint64_t rates[] = {100 * GBIT};

	(void)state;
	links_make(1, rates);
	mesh.links[0].delay_ns = 10 * MS;
	stream(1ull << 30, 1 << 20, 1ull << 30);
	reaches(0.9, 4ull << 30, 1 << 20, 1ull << 30);
}

/* ---- latency -------------------------------------------------------------------------------- */

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
			post(&mesh.links[k], 16 << 10);
			wait_completion();
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
static void test_latency_first_estimate(void **state)
{
	(void)state;
	assert_int_equal(first_link_takes(2000, 200000), 1000);
	assert_int_equal(first_link_takes(200000, 2000), 0);
	assert_int_equal(first_link_takes(30000, 55000), 500);
	assert_int_equal(first_link_takes(2000, 0), 500); /* nothing is known of one of them */
}

/* Completions tell it as well, and that it has changed. */
static void test_latency_is_measured(void **state)
{
	int used[2];

	(void)state;
	two_links_make(2000, 200000);
	trips(1);
	messages_go(used);
	assert_int_equal(used[0], 1000);
	mesh.links[0].delay_ns = 200000; /* another way round, perhaps */
	mesh.links[1].delay_ns = 2000;
	trips(16);
	messages_go(used);
	assert_int_equal(used[1], 1000);
}

/* One who polls late makes single trips long, and no link longer. */
static void test_latency_outliers(void **state)
{
	int used[2];

	(void)state;
	two_links_make(2000, 2000);
	trips(1);
	mesh.links[1].delay_ns = 5 * MS;
	trips(7);
	messages_go(used);
	assert_int_equal(used[0], 500);
}

/* A hint is TCP's round trip: one that RDMA has shown is not compared with it. */
static void test_latency_like_with_like(void **state)
{
	int used[2];

	(void)state;
	two_links_make(2000, 2000);
	mesh_pace_hint(&mesh.links[0].pace, 40000);
	mesh_pace_hint(&mesh.links[1].pace, 45000);
	post(&mesh.links[0], 4096);
	wait_completion();
	messages_go(used);
	assert_int_equal(used[0], 500);
}

/* Neither long writes nor those that wait behind others show it. */
static void test_latency_of_busy_links(void **state)
{
	struct mesh_pace *pace = &mesh.links[0].pace;

	(void)state;
	two_links_make(2000, 2000);
	post(&mesh.links[0], 4 << 20);
	post(&mesh.links[0], 4096);
	wait_completion();
	wait_completion();
	assert_int_equal(atomic_load(&pace->latency_ns), 0);
	post(&mesh.links[0], 4096);
	wait_completion();
	assert_in_range(atomic_load(&pace->latency_ns), 1, 4000);
}

/* A segment takes the short link, until that is full: then the other one adds its bandwidth. */
static void test_latency_of_segments(void **state)
{
	int i;

	(void)state;
	two_links_make(2000, 20 * MS);
	mesh_pace_hint(&mesh.links[0].pace, 2000);
	mesh_pace_hint(&mesh.links[1].pace, 20 * MS);
	for (i = 0; i < (int)MESH_PACE_WINDOW_MIN / (512 << 10); i++) {
		assert_int_equal(
			mesh_pace_choose(mesh.paces, 2, 512 << 10, mesh.rotation++, mesh.now_ns),
			0);
		post(&mesh.links[0], 512 << 10);
	}
	assert_int_equal(mesh_pace_choose(mesh.paces, 2, 512 << 10, mesh.rotation++, mesh.now_ns),
			 1);
}

/* One operation may always go, however large; more only within the window. */
static void test_window(void **state)
{
	static const uint64_t rates[] = {GBIT};

	(void)state;
	links_make(1, rates);
	assert_true(mesh_pace_has_room(mesh.paces[0], 1ull << 40));
	post(&mesh.links[0], MESH_PACE_WINDOW_MIN / 2);
	assert_true(mesh_pace_has_room(mesh.paces[0], MESH_PACE_WINDOW_MIN / 2));
	assert_false(mesh_pace_has_room(mesh.paces[0], MESH_PACE_WINDOW_MIN / 2 + 1));
	wait_completion();
	assert_int_equal(mesh_pace_in_flight(mesh.paces[0]), 0);
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
static void test_window_follows_the_rate(void **state)
{
	static const struct {
		int gbit;
		uint64_t window;
	} cases[] = {{10, 16 << 20}, {200, 25000000}, {400, 32 << 20}};
	struct mesh_pace pace;
	uint64_t window;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mesh_pace_init(&pace, cases[i].gbit * 1000, &rdma);
		assert_int_equal(atomic_load(&pace.window), cases[i].window);
	}
	/* It claimed 400 Gbit/s and shows what it does: 160. */
	for (i = 0; i < 2000; i++)
		deliver(&pace, 1 << 20, (1 << 20) / 20);
	window = atomic_load(&pace.window);
	assert_in_range(window, 19900000, 20200000);
	/* A longer path holds more than that. */
	links_make(1, (const uint64_t[]){100 * GBIT});
	mesh_pace_init(&mesh.links[0].pace, 100000, &rdma);
	mesh.links[0].delay_ns = 10 * MS;
	reaches(0.9, 4ull << 30, 1 << 20, 1ull << 30);
}

/* What a NIC claims is the first guess; without a claim 10 Gbit/s. */
static void test_first_guess(void **state)
{
	struct mesh_pace pace;

	(void)state;
	mesh_pace_init(&pace, 100000, &tcp);
	assert_int_equal(mesh_pace_finish_ns(&pace, 12500000, 1), MS);
	mesh_pace_init(&pace, 0, &tcp);
	assert_int_equal(mesh_pace_finish_ns(&pace, 12500000, 1), 10 * MS);
}

/* Since the last completion, or since there is something to complete again. */
static void test_silence(void **state)
{
	struct mesh_pace pace;

	(void)state;
	mesh_pace_init(&pace, 0, &tcp);
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
	/* One that is quiet for longer than its queue should take counts as that much slower. */
	assert_true(mesh_pace_finish_ns(&pace, 1000, 1000 + 50 * MS) > 50 * MS);
	mesh_pace_forget(&pace, 1000);
	assert_int_equal(mesh_pace_in_flight(&pace), 0);
}

/* A measurement counts once it has bytes or time enough, and one alone does not decide. */
static void test_measurements(void **state)
{
	struct mesh_pace pace;
	uint64_t before;
	int i;

	(void)state;
	mesh_pace_init(&pace, 10000, &tcp);
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
	for (i = 0; i < 20; i++)
		deliver(&pace, 1, 1000 * MS);
	assert_int_equal(rate_of(&pace), 1);
	assert_true(mesh_pace_finish_ns(&pace, 1, 0) > 0);
}

/* However long and fast a path is, the bytes in flight are bounded. */
static void test_window_is_bounded(void **state)
{
	struct mesh_pace pace;
	int i;

	(void)state;
	mesh_pace_init(&pace, 1000000, &tcp);
	for (i = 0; i < 20; i++)
		deliver(&pace, 1ull << 40, 1000 * MS);
	mesh_pace_posted(&pace, MESH_PACE_WINDOW_MAX - 1000, 1);
	assert_true(mesh_pace_has_room(&pace, 1000));
	assert_false(mesh_pace_has_room(&pace, 1001));
}

/* A slow link is tried when it was measured long ago, and has nothing: not if it never carried. */
static void test_probe(void **state)
{
	struct mesh_pace fast, slow;
	const struct mesh_pace *paces[] = {&fast, &slow};
	uint64_t now_ns;

	(void)state;
	mesh_pace_init(&fast, 100000, &tcp);
	mesh_pace_init(&slow, 100, &tcp);
	assert_int_equal(mesh_pace_choose(paces, 2, 1 << 20, 1, 1000 * MS), 0);
	deliver(&slow, 1000, MS);
	now_ns = atomic_load(&slow.last_ns) + MESH_PACE_PROBE_NS;
	assert_int_equal(mesh_pace_choose(paces, 2, 1 << 20, 1, now_ns), 0);
	assert_int_equal(mesh_pace_choose(paces, 2, 1 << 20, 1, now_ns + 1), 1);
	mesh_pace_posted(&slow, 1000, now_ns);
	assert_int_equal(mesh_pace_choose(paces, 2, 1 << 20, 1, now_ns + 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_drop_and_recovery),
		cmocka_unit_test(test_drop_in_flight),
		cmocka_unit_test(test_dead_link),
		cmocka_unit_test(test_small_rotate),
		cmocka_unit_test(test_long_way),
		cmocka_unit_test(test_latency_first_estimate),
		cmocka_unit_test(test_latency_is_measured),
		cmocka_unit_test(test_latency_outliers),
		cmocka_unit_test(test_latency_like_with_like),
		cmocka_unit_test(test_latency_of_busy_links),
		cmocka_unit_test(test_latency_of_segments),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_window_follows_the_rate),
		cmocka_unit_test(test_first_guess),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_measurements),
		cmocka_unit_test(test_window_is_bounded),
		cmocka_unit_test(test_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
