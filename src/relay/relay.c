/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - this process as a relay: for whom it relays, who else may, and the polling thread. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/threads.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "fabric/poll.h"
#include "neighbours/neighbours.h"
#include "nic/path_choice.h"
#include "relay/relay.h"
#include "wire/frame.h"

/*
 * The longest sleep while there are circuits. Descriptors and mesh_relay_moved() wake the thread;
 * this is for a completion that a post of another comm has made and no thread has read. The engine
 * polls for such a one as well, until a second after the last poll by another thread: a shorter
 * sleep would keep it awake.
 */
#define LOOK_S 2
/* The thread polls for so long after a small message, and where no descriptor would wake it. */
#define POLL_NS 200000ull
/* And for so long, which is about the time of a wake-up, after a segment. A pause has this, too. */
#define SEGMENT_POLL_NS 10000ull
/* A pause is longer by this part of the time since the thread has stopped to poll, up to that. */
#define PAUSE_PART 16
#define PAUSE_MAX_NS 1000000ull

/*
 * Parts of the limit of silence: a relay is asked so often, and looks that are further apart than
 * the second one do not count. The relay behind one that is asked is asked in the same rhythm.
 */
#define ASK_PART 4
#define LOOK_PART 2

/* ---- when the thread polls, pauses and sleeps ------------------------------------------------ */

/* Times in ns. */
struct rest {
	uint64_t until_ns;	  /* it polls until then */
	uint64_t moved, messages; /* as in struct mesh_relay_thread, in that turn */
	bool vain;		  /* a NIC has woken the thread since the last pause */
};

/* What the thread sleeps on. */
struct wait_set {
	struct pollfd fds[1 + MESH_MAIN_DOMAINS]; /* wake_fd is the first one */
	int num;
	bool complete; /* an event makes each of these domains readable */
};

/* Called after each poll. Returns true if the thread is to poll again at once. */
static bool turn_polls(struct rest *rest, const struct mesh_relay_thread *thread,
		       const struct wait_set *set)
{
	uint64_t now_ns = mesh_clock_ns(), moved = atomic_load(&thread->moved);
	uint64_t messages = atomic_load_explicit(&thread->messages, memory_order_relaxed);
	bool stays = messages != rest->messages || !set->complete;
	uint64_t until_ns = now_ns + (stays ? POLL_NS : SEGMENT_POLL_NS);

	if (moved != rest->moved || messages != rest->messages) {
		rest->vain = false;
		if (until_ns > rest->until_ns)
			rest->until_ns = until_ns;
	}
	rest->moved = moved;
	rest->messages = messages;
	return now_ns < rest->until_ns;
}

/* How long to pause where no descriptor can wake the thread. */
static uint64_t pause_ns(const struct rest *rest)
{
	uint64_t pause = SEGMENT_POLL_NS + (mesh_clock_ns() - rest->until_ns) / PAUSE_PART;

	return pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* @domains: bits; the lowest one is cleared. Returns that domain; NULL: it is not open. */
static struct mesh_domain *domain_next(const struct mesh_relay *relay, uint32_t *domains)
{
	int i = __builtin_ctz(*domains);

	*domains &= *domains - 1;
	return atomic_load(&relay->process->domains[i]);
}

/* Polls the domains, and prepares to sleep on them. */
static void domains_poll(struct mesh_relay *relay, uint32_t domains, struct wait_set *set)
{
	uint32_t polled = domains;
	struct mesh_domain *domain;
	int fd;

	set->complete = true;
	while (polled) {
		domain = domain_next(relay, &polled);
		if (domain && !mesh_domain_poll(domain))
			set->complete = false; /* who polls may leave something that waits */
	}
	set->fds[0] = (struct pollfd){.fd = relay->thread.wake_fd, .events = POLLIN};
	set->num = 1;
	while (domains) {
		domain = domain_next(relay, &domains);
		fd = domain ? mesh_readiness_fd(domain) : -1;
		if (fd >= 0)
			set->fds[set->num++] = (struct pollfd){.fd = fd, .events = POLLIN};
		if (fd < 0 || atomic_load_explicit(&domain->has_waiting, memory_order_relaxed))
			set->complete = false;
	}
}

/* Sleeps, unless something was forwarded since @rest. Returns true if a NIC has ended the sleep. */
static bool thread_sleep(struct mesh_relay_thread *thread, const struct rest *rest,
			 struct wait_set *set, const struct timespec *limit)
{
	uint64_t count;
	int num = 0;

	/* Both sides write, then read what the other one writes: one of them sees the other. */
	atomic_store(&thread->sleeps, true);
	if (atomic_load(&thread->moved) == rest->moved)
		num = ppoll(set->fds, (nfds_t)set->num, limit, NULL);
	atomic_store(&thread->sleeps, false);
	if (num <= 0 || !set->fds[0].revents)
		return num > 0;
	if (read(thread->wake_fd, &count, sizeof(count)) < 0)
		return false;
	return false;
}

/* Sleeps until there may be something to do, or pauses. */
static void thread_rest(struct mesh_relay_thread *thread, struct rest *rest, bool has_circuits,
			struct wait_set *set)
{
	struct timespec limit = {.tv_sec = LOOK_S};

	if (rest->vain)
		set->num = 1; /* the NICs would end the pause at once */
	if (rest->vain || !set->complete)
		limit = (struct timespec){.tv_nsec = (long)pause_ns(rest)};
	rest->vain = thread_sleep(thread, rest, set, has_circuits ? &limit : NULL);
}

static void *thread_run(void *arg)
{
	struct mesh_relay *relay = arg;
	struct mesh_relay_thread *thread = &relay->thread;
	struct rest rest = {.until_ns = mesh_clock_ns(),
			    .moved = atomic_load(&thread->moved),
			    .messages = atomic_load(&thread->messages)};
	struct wait_set set;
	uint32_t domains;

	while (!atomic_load(&thread->stop)) {
		domains = atomic_load(&thread->domains);
		domains_poll(relay, domains, &set);
		if (turn_polls(&rest, thread, &set) && domains)
			sched_yield();
		else
			thread_rest(thread, &rest, domains, &set);
	}
	return NULL;
}

static int start_fail(int error)
{
	mesh_warn("cannot start the thread that relays: %s", strerror(-error));
	return error;
}

int mesh_relay_thread_start(struct mesh_relay *relay)
{
	struct mesh_relay_thread *thread = &relay->thread;
	int ret;

	if (thread->running)
		return 0;
	if (thread->wake_fd < 0)
		thread->wake_fd = mesh_descriptor_hide(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (thread->wake_fd < 0)
		return start_fail(-errno);
	ret = mesh_thread_create(&thread->thread, "mesh-relay", thread_run, relay);
	if (ret)
		return start_fail(ret);
	thread->running = true;
	return 0;
}

void mesh_relay_thread_wake(struct mesh_relay_thread *thread)
{
	const uint64_t one = 1;

	atomic_store(&thread->sleeps, false); /* one write is enough */
	/* A full counter also wakes the thread, so the result does not matter. */
	if (write(thread->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* ---- the relay ------------------------------------------------------------------------------- */

int mesh_relay_open(struct mesh_process *process, uint64_t job)
{
	struct mesh_relay *relay = calloc(1, sizeof(*relay));

	mesh_process_assert_locked(process);
	if (!relay)
		return -ENOMEM;
	relay->process = process;
	relay->job = job;
	LIST_INIT(&relay->circuits);
	relay->thread.wake_fd = -1;
	process->relay = relay;
	return 0;
}

/* process->relay is constant while started. */
MESH_NOT_ANALYSED
void mesh_relay_stop(struct mesh_process *process)
{
	struct mesh_relay_thread *thread = process->relay ? &process->relay->thread : NULL;

	if (!thread)
		return;
	atomic_store(&thread->stop, true);
	if (!thread->running)
		return;
	mesh_relay_thread_wake(thread);
	pthread_join(thread->thread, NULL);
	thread->running = false;
}

void mesh_relay_close(struct mesh_process *process)
{
	struct mesh_relay *relay = process->relay;

	mesh_process_assert_locked(process);
	if (!relay)
		return;
	mesh_descriptor_close(relay->thread.wake_fd);
	process->relay = NULL;
	free(relay);
}

void mesh_relay_wake(struct mesh_relay *relay)
{
	if (!atomic_exchange(&relay->news, true))
		mesh_engine_wake(&relay->process->engine);
}

void mesh_relay_ask(struct mesh_relay_question *question, struct mesh_peer *relay, uint32_t to,
		    uint64_t now_ms)
{
	uint64_t limit_ms = mesh_link_resumed_limit_ms(relay->process);

	mesh_process_assert_locked(relay->process);
	if (question->asked_ms &&
	    mesh_clock_elapsed_ms(question->looked_ms, now_ms) > limit_ms / LOOK_PART)
		question->asked_ms = now_ms;
	question->looked_ms = now_ms;
	if (question->asked_ms ||
	    (question->sent_ms &&
	     mesh_clock_elapsed_ms(question->sent_ms, now_ms) < limit_ms / ASK_PART))
		return;
	question->sent_ms = question->asked_ms = now_ms;
	mesh_circuit_event_send(relay, to, (struct mesh_frame_circuit){.event = MESH_CIRCUIT_ASK});
}

bool mesh_relay_is_silent(const struct mesh_relay_question *question,
			  const struct mesh_process *process, uint64_t now_ms)
{
	return question->asked_ms && mesh_clock_elapsed_ms(question->asked_ms, now_ms) >=
					     mesh_link_resumed_limit_ms(process);
}

bool mesh_relay_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello)
{
	mesh_process_assert_locked(process);
	return process->relay && process->role != MESH_PROCESS_GUEST &&
	       strcmp(process->config.relay, "off") != 0 && hello->listen_id == MESH_LISTEN_RELAY &&
	       hello->cookie == process->process_id;
}

bool mesh_relay_serves(const struct mesh_process *process, uint64_t job)
{
	mesh_process_assert_locked(process);
	if (!process->relay || !strcmp(process->config.relay, "off"))
		return false;
	return !strcmp(process->config.relay, "any") || (job && job == process->relay->job);
}

/* ---- who may relay, and the way on to the listener ------------------------------------------- */

/* The heard NIC's address that shares a subnet with our endpoint; else NULL. */
static const struct mesh_neighbour_addr *common_addr(const struct mesh_endpoint_addr *local,
						     const struct mesh_neighbour *about)
{
	struct mesh_addr addr;

	if (!about->num_addrs)
		return NULL;
	/* A node's endpoint is bound to the first one. */
	mesh_neighbour_addr_get(&about->addrs[0], &addr);
	return mesh_addr_same_subnet(&local->addr, &addr) ? &about->addrs[0] : NULL;
}

/* The provider that our NIC has in common with the one that was heard. */
MESH_HOLDS(process)
static enum mesh_provider_id common_provider(const struct mesh_process *process, int dev,
					     const struct mesh_neighbour *about)
{
	enum mesh_provider_id provider = process->providers[dev];

	if (!(about->providers >> provider & 1))
		provider = MESH_PROVIDER_TCP;
	return about->providers >> provider & 1 ? provider : MESH_PROVIDER_NONE;
}

/* The endpoint of our NIC; NULL: it has none. */
MESH_HOLDS(process)
static const struct mesh_endpoint_addr *endpoint_of(const struct mesh_process *process,
						    unsigned int ifindex)
{
	int i;

	for (i = 0; i < process->num_endpoints; i++) {
		if (process->nics[process->endpoints[i].nic]->ifindex == ifindex)
			return &process->endpoints[i];
	}
	return NULL;
}

/* A NIC of another node that was heard on ours. Returns false if the two have no path. */
MESH_HOLDS(process)
static bool heard_take(const struct mesh_process *process, const struct mesh_neighbours *neighbours,
		       const struct mesh_heard_at *at, const struct mesh_heard *heard,
		       struct mesh_next *next)
{
	const struct mesh_endpoint_addr *ours =
		endpoint_of(process, neighbours->asking.links[at->link].ifindex);
	const struct mesh_neighbour *about = &heard->about;
	const struct mesh_neighbour_addr *addr = ours ? common_addr(ours, about) : NULL;

	if (!addr)
		return false;
	memset(next, 0, sizeof(*next));
	mesh_neighbour_addr_get(addr, &next->way.address.addr);
	next->way.address.provider = common_provider(process, ours->nic, about);
	next->way.address.nic = about->nic;
	next->way.index = mesh_process_domain_index(process, ours->nic, next->way.address.provider);
	next->way.needs_carrier = true;
	next->drained = about->flags & MESH_NEIGHBOUR_DRAINED ||
			mesh_process_is_drained(process, ours->nic);
	next->node_id = about->node_id;
	memcpy(next->node, about->node, sizeof(next->node));
	return next->way.index >= 0;
}

/* The best that suitability() returns. */
#define SUITABILITY_MAX 3

/*
 * How far a process may be asked to relay for @job: 3 it belongs to that job, 2 it is there for
 * such jobs, 1 it may relay for all (@any), 0 not at all.
 */
static int suitability(const struct mesh_neighbour_process *process, uint64_t job, bool any)
{
	if (!process->control_port || process->protocol != MESH_PROTOCOL_VERSION)
		return 0;
	if (job && process->job == job)
		return SUITABILITY_MAX;
	if (mesh_neighbour_serves(process, job))
		return 2;
	return any ? 1 : 0;
}

/* The process at place @at of those of the node that may relay for @job, the best first. */
static const struct mesh_neighbour_process *process_find(const struct mesh_neighbour *about,
							 uint64_t job, bool any, int at)
{
	int i, wanted;

	for (wanted = SUITABILITY_MAX; wanted > 0; wanted--) {
		for (i = 0; i < about->num_processes; i++) {
			if (suitability(&about->processes[i], job, any) == wanted && !at--)
				return &about->processes[i];
		}
	}
	return NULL;
}

static void process_name(const struct mesh_neighbour_process *process, struct mesh_next *next)
{
	next->way.control_port = process->control_port;
	next->way.listen_id = MESH_LISTEN_RELAY;
	next->way.cookie = process->process_id;
}

/* Drained ones come last, then each turn has those over RDMA first. */
static bool is_before(const struct mesh_next *a, const struct mesh_next *b)
{
	if (a->drained != b->drained)
		return b->drained;
	if (a->turn != b->turn)
		return a->turn < b->turn;
	return a->way.address.provider == MESH_PROVIDER_VERBS_RXM &&
	       b->way.address.provider != MESH_PROVIDER_VERBS_RXM;
}

/* Else they keep their order. */
static void nexts_sort(struct mesh_next *nexts, int num)
{
	struct mesh_next next;
	int i, k;

	for (i = 1; i < num; i++) {
		next = nexts[i];
		for (k = i; k && is_before(&next, &nexts[k - 1]); k--)
			nexts[k] = nexts[k - 1];
		nexts[k] = next;
	}
}

/*
 * Has each of the first ones, which are alike, come first for some @spread. Backwards, because the
 * ways over one of our NICs are side by side.
 */
static void nexts_spread(struct mesh_next *nexts, int num, uint32_t spread)
{
	struct mesh_next last;
	int alike = 1, turns;

	while (alike < num && nexts[alike].node_id == nexts[0].node_id &&
	       !is_before(&nexts[0], &nexts[alike]))
		alike++;
	for (turns = (int)(spread % (uint32_t)alike); turns && num; turns--) {
		last = nexts[alike - 1];
		memmove(nexts + 1, nexts, (size_t)(alike - 1) * sizeof(*nexts));
		nexts[0] = last;
	}
}

int mesh_nexts_of_node(const struct mesh_process *process, const struct mesh_neighbours *neighbours,
		       uint64_t node_id, uint64_t job, uint32_t spread, struct mesh_next *nexts,
		       int max)
{
	bool any = !strcmp(process->config.relay, "any");
	const struct mesh_neighbour_process *found;
	const struct mesh_heard *heard;
	struct mesh_heard_at place;
	int at, num = 0;

	mesh_process_assert_locked(process);
	for (at = 0; neighbours && at < MESH_NEIGHBOUR_PROCESSES_MAX; at++) {
		place = (struct mesh_heard_at){0};
		while (num < max &&
		       (heard = mesh_asking_heard_next(&neighbours->asking, node_id, 0, &place))) {
			found = process_find(&heard->about, job, any, at);
			if (!found || !heard_take(process, neighbours, &place, heard, &nexts[num]))
				continue;
			process_name(found, &nexts[num]);
			nexts[num++].turn = at;
		}
	}
	nexts_sort(nexts, num);
	nexts_spread(nexts, num, spread);
	return num;
}

static void listener_name(const struct mesh_handle *handle, struct mesh_next *next)
{
	mesh_way_listener_set(&next->way, handle);
	next->node_id = handle->node_id;
	memcpy(next->node, handle->node, sizeof(next->node));
}

/* True if another one leads there over the same two NICs. */
static bool is_listed(const struct mesh_next *nexts, int num, const struct mesh_next *next)
{
	int i;

	for (i = 0; i < num; i++) {
		if (nexts[i].way.index == next->way.index &&
		    mesh_addr_equal(&nexts[i].way.address.addr, &next->way.address.addr))
			return true;
	}
	return false;
}

/* By common subnets, the best first; returns the new number. */
MESH_HOLDS(process)
static int subnets_take(const struct mesh_process *process, const struct mesh_handle *handle,
			struct mesh_next *nexts, int num, int max)
{
	const struct mesh_path_hints hints = {
		.remote_nic = handle->dev,
		.spread = handle->listen_id,
		.same_node = handle->node_id == process->node_id,
	};
	const struct mesh_path_candidate *pair;
	struct mesh_path_choice choice;

	mesh_path_choose(process->endpoints, process->num_endpoints, handle->endpoints,
			 handle->num_endpoints, &hints, &choice);
	for (pair = choice.candidates;
	     pair < choice.candidates + choice.num_candidates && num < max; pair++) {
		/* Every link has the same link-local subnet: such a pair proves nothing. */
		if (mesh_addr_is_link_local(&handle->endpoints[pair->remote].addr))
			continue;
		nexts[num] = (struct mesh_next){.turn = 1};
		if (!mesh_way_of_pair(process, handle, pair, &nexts[num].way) ||
		    is_listed(nexts, num, &nexts[num]))
			continue;
		nexts[num].drained =
			mesh_process_is_drained(process, mesh_way_dev(&nexts[num].way));
		num++;
	}
	return num;
}

int mesh_nexts_of_handle(const struct mesh_process *process,
			 const struct mesh_neighbours *neighbours, const struct mesh_handle *handle,
			 struct mesh_next *nexts, int max)
{
	const struct mesh_heard *heard;
	struct mesh_heard_at at = {0};
	int i, num = 0;

	mesh_process_assert_locked(process);
	while (neighbours && handle->node_id && num < max &&
	       (heard = mesh_asking_heard_next(&neighbours->asking, handle->node_id, 0, &at))) {
		num += heard_take(process, neighbours, &at, heard, &nexts[num]);
	}
	num = subnets_take(process, handle, nexts, num, max);
	for (i = 0; i < num; i++)
		listener_name(handle, &nexts[i]);
	nexts_sort(nexts, num);
	nexts_spread(nexts, num, handle->listen_id);
	return num;
}
