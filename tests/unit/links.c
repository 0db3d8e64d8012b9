/* SPDX-License-Identifier: Apache-2.0 */
/* links.c - links that are simulated, for tests of the pace. */
#include "links.h"

struct links mesh;

const struct mesh_pace_bounds links_tcp = {MESH_PACE_WINDOW_MIN, MESH_PACE_WINDOW_MIN};
const struct mesh_pace_bounds links_rdma = {16 << 20, 32 << 20};

void links_make(int num, const uint64_t *rates)
{
	memset(&mesh, 0, sizeof(mesh));
	mesh.num = num;
	mesh.now_ns = 12345 * MS;
	for (int i = 0; i < num; i++) {
		mesh.links[i].rate = rates[i];
		mesh.links[i].delay_ns = 50000;
		mesh_pace_init(&mesh.links[i].pace, 10000, &links_tcp);
		mesh.paces[i] = &mesh.links[i].pace;
	}
}

void link_post(struct link *link, uint64_t bytes)
{
	uint64_t start = link->free_ns > mesh.now_ns ? link->free_ns : mesh.now_ns;
	unsigned int slot = link->end++ % LINK_QUEUE_MAX;

	assert_true(link->end - link->first <= LINK_QUEUE_MAX);
	mesh_pace_posted(&link->pace, bytes, mesh.now_ns);
	link->free_ns = start + bytes * MS / link->rate;
	link->queue[slot].bytes = bytes;
	link->queue[slot].posted_ns = mesh.now_ns;
	link->queue[slot].sent_ns = link->free_ns + link->delay_ns;
}

void link_rate_change(struct link *link, uint64_t rate)
{
	uint64_t at = mesh.now_ns;

	link->rate = rate;
	for (unsigned int i = link->first; i != link->end; i++) {
		at += link->queue[i % LINK_QUEUE_MAX].bytes * MS / rate;
		link->queue[i % LINK_QUEUE_MAX].sent_ns = at + link->delay_ns;
	}
	link->free_ns = at;
}

void links_wait_completion(void)
{
	struct link *next = NULL;
	unsigned int slot;

	for (int i = 0; i < mesh.num; i++) {
		struct link *link = &mesh.links[i];

		if (link->first != link->end &&
		    (!next || link->queue[link->first % LINK_QUEUE_MAX].sent_ns <
				      next->queue[next->first % LINK_QUEUE_MAX].sent_ns))
			next = link;
	}
	assert_non_null(next);
	slot = next->first++ % LINK_QUEUE_MAX;
	if (next->queue[slot].sent_ns > mesh.now_ns)
		mesh.now_ns = next->queue[slot].sent_ns;
	next->carried += next->queue[slot].bytes;
	mesh_pace_completed(&next->pace, next->queue[slot].bytes, next->queue[slot].posted_ns,
			    mesh.now_ns);
}

static uint64_t in_flight(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i < mesh.num; i++)
		bytes += mesh_pace_in_flight(mesh.paces[i]);
	return bytes;
}

double links_stream(uint64_t total, uint64_t segment, uint64_t ahead)
{
	uint64_t started_ns = mesh.now_ns, sent = 0;
	int i;

	while (sent < total) {
		i = mesh_pace_choose(mesh.paces, mesh.num, segment, mesh.rotation++, mesh.now_ns);
		if (in_flight() + segment > ahead || !mesh_pace_has_room(mesh.paces[i])) {
			links_wait_completion();
			continue;
		}
		link_post(&mesh.links[i], segment);
		sent += segment;
	}
	while (in_flight())
		links_wait_completion();
	return (double)(mesh.now_ns - started_ns) / (double)MS;
}

/* Bytes in a millisecond that all links together would carry. */
static double sum(void)
{
	double rate = 0;

	for (int i = 0; i < mesh.num; i++)
		rate += (double)mesh.links[i].rate;
	return rate;
}

void links_reach(double share, uint64_t total, uint64_t segment, uint64_t ahead)
{
	double ms = links_stream(total, segment, ahead), got = (double)total / ms / sum();

	if (got < share)
		fail_msg("%.3f of the sum of the links, not %.3f", got, share);
}
