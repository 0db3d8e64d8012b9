/* SPDX-License-Identifier: Apache-2.0 */
/* relay_chain.c - a line of nodes in one process, of which the relays are the product's. */
#include "base/clock.h"
#include "fabric/fence.h"
#include "relay/circuit.h"
#include "relay/circuits.h"
#include "relay/next.h"
#include "relay/opening.h"

#include "fake_fabric.h"
#include "relay_chain.h"
#include "unit.h"

/* Receives that each domain posts; none is used. */
#define RECEIVES 4
#define PORT 4321
/* NCCL_MESH_RELAY_MEMORY of each relay, in bytes. */
#define MEMORY (64 << 20)

struct chain chain;

int chain_num_ends(void)
{
	return 2 * (chain.num_nodes - 1);
}

bool chain_is_relay(int node)
{
	return node > 0 && node < chain.num_nodes - 1;
}

struct chain_end *chain_end_of(int node, int other)
{
	return other > node ? chain.nodes[node].right : chain.nodes[node].left;
}

/* ---- frames -------------------------------------------------------------------------------- */

static struct chain_end *end_of_peer(const struct mesh_peer *peer, bool *out)
{
	int i;

	for (i = 0; i < chain_num_ends(); i++) {
		*out = peer == &chain.ends[i].peers[0];
		if (*out || peer == &chain.ends[i].peers[1])
			return &chain.ends[i];
	}
	fail_msg("an unknown peer");
	return NULL;
}

void chain_frame_send(struct chain_end *end, bool out, struct mesh_frame *frame,
		      enum mesh_frame_type type)
{
	struct chain_frame *sent;
	size_t size = mesh_frame_finish(frame, type);

	if (end->broken)
		return;
	sent = calloc(1, sizeof(*sent));
	assert_non_null(sent);
	assert_int_equal(mesh_frame_decode(frame, size, &sent->frame), size);
	TAILQ_INSERT_TAIL(&end->frames[!out], sent, entry);
}

void __wrap_mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame,
			   enum mesh_frame_type type);
void __wrap_mesh_peer_send(struct mesh_peer *peer, struct mesh_frame *frame,
			   enum mesh_frame_type type)
{
	bool out;
	struct chain_end *end = end_of_peer(peer, &out);

	mesh_process_assert_locked(peer->process);
	if (peer->state == MESH_PEER_UP) /* else the connection is closed */
		chain_frame_send(end, out, frame, type);
}

void __wrap_mesh_peer_refuse(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t comm);
void __wrap_mesh_peer_refuse(struct mesh_peer *peer, enum mesh_refusal refusal, uint32_t comm)
{
	struct mesh_frame frame = {.refuse = {.refusal = refusal, .comm = comm}};

	__wrap_mesh_peer_send(peer, &frame, MESH_FRAME_REFUSE);
}

/* As src/setup/events.c does, without ends in the same process. */
MESH_HOLDS(process)
static void frame_handle(struct mesh_peer *peer, const struct mesh_frame *frame)
{
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_OPEN:
		mesh_circuit_open_came(peer, frame);
		break;
	case MESH_FRAME_ACCEPT:
		if (!mesh_circuit_accepted(peer, frame))
			mesh_circuit_accepted_in_vain(peer, frame);
		break;
	case MESH_FRAME_REFUSE:
		mesh_circuit_refused(peer, frame);
		break;
	case MESH_FRAME_OPENED:
		if (!mesh_circuit_opened(peer, frame))
			mesh_circuit_opened_in_vain(peer, frame);
		break;
	case MESH_FRAME_CIRCUIT:
		mesh_circuit_event(peer, frame);
		break;
	default:
		mesh_circuit_frame_pass(peer, frame);
		break;
	}
}

/* @out: over the connection that the receiving end has made. */
static void frame_deliver(struct chain_end *to, bool out, const struct mesh_frame *frame)
{
	struct mesh_process *process = &chain.nodes[to->node].process;

	if (!chain_is_relay(to->node)) {
		chain.frame_came(to, out, frame);
		return;
	}
	if (to->knows)
		return;
	mesh_lock_take(&process->lock);
	frame_handle(&to->peers[!out], frame);
	mesh_lock_release(&process->lock);
	chain_posts_take(FAKE_SEND);
}

bool chain_frame_step(void)
{
	struct chain_frame *next;
	struct chain_end *end;
	int at;

	for (at = 0; at < 2 * chain_num_ends(); at++) {
		end = &chain.ends[at / 2];
		next = TAILQ_FIRST(&end->frames[at % 2]);
		if (!next || chain.stopped >> end->other->node & 1)
			continue;
		TAILQ_REMOVE(&end->frames[at % 2], next, entry);
		frame_deliver(end->other, at % 2, &next->frame);
		free(next);
		return true;
	}
	return false;
}

/* ---- what relays see of the other layers --------------------------------------------------- */

/* The way on to node @to: that node itself, or the neighbour on the way there. */
static int way_find(const struct mesh_process *process, uint64_t node_id, struct mesh_next *nexts)
{
	memset(nexts, 0, sizeof(*nexts));
	nexts->way.index = node_id > process->node_id;
	nexts->way.cookie = node_id;
	nexts->node_id = node_id;
	return 1;
}

int __wrap_mesh_nexts_of_node(const struct mesh_process *process,
			      const struct mesh_neighbours *neighbours, uint64_t node_id,
			      uint64_t job, struct mesh_next *nexts, int max);
int __wrap_mesh_nexts_of_node(const struct mesh_process *process,
			      const struct mesh_neighbours *neighbours, uint64_t node_id,
			      uint64_t job, struct mesh_next *nexts, int max)
{
	(void)neighbours;
	(void)job;
	(void)max;
	return way_find(process, node_id, nexts);
}

int __wrap_mesh_nexts_of_handle(const struct mesh_process *process,
				const struct mesh_neighbours *neighbours,
				const struct mesh_handle *handle, struct mesh_next *nexts, int max);
int __wrap_mesh_nexts_of_handle(const struct mesh_process *process,
				const struct mesh_neighbours *neighbours,
				const struct mesh_handle *handle, struct mesh_next *nexts, int max)
{
	(void)neighbours;
	(void)max;
	return way_find(process, handle->node_id, nexts);
}

void __wrap_mesh_neighbours_ask(struct mesh_neighbours *neighbours);
void __wrap_mesh_neighbours_ask(struct mesh_neighbours *neighbours)
{
	assert_ptr_equal(neighbours, &chain);
}

/* No round goes on. */
uint64_t __wrap_mesh_neighbours_waited_ms(const struct mesh_neighbours *neighbours,
					  uint64_t now_ms);
uint64_t __wrap_mesh_neighbours_waited_ms(const struct mesh_neighbours *neighbours, uint64_t now_ms)
{
	(void)neighbours;
	(void)now_ms;
	return UINT64_MAX;
}

/* The NIC is open. */
int __wrap_mesh_dial_begin(struct mesh_dial *dial, struct mesh_process *process,
			   const struct mesh_way *way, bool again, uint64_t now_ms);
int __wrap_mesh_dial_begin(struct mesh_dial *dial, struct mesh_process *process,
			   const struct mesh_way *way, bool again, uint64_t now_ms)
{
	int node = (int)(process->node_id - CHAIN_NODE_ID(0));

	(void)again;
	*dial = (struct mesh_dial){
		.process = process,
		.way = *way,
		.state = MESH_DIAL_TRYING,
		.since_ms = now_ms,
		.peer = &chain_end_of(node, way->index ? node + 1 : node - 1)->peers[0],
	};
	mesh_peer_use(dial->peer);
	return 0;
}

int __wrap_mesh_relay_thread_start(struct mesh_relay *relay);
int __wrap_mesh_relay_thread_start(struct mesh_relay *relay)
{
	(void)relay;
	return 0;
}

int __wrap_mesh_readiness_open(struct mesh_domain *domain);
int __wrap_mesh_readiness_open(struct mesh_domain *domain)
{
	(void)domain;
	return -EOPNOTSUPP;
}

/* The thread that connects on verbs has nothing to do. */
void __wrap_mesh_connector_wake(struct mesh_domain *domain);
void __wrap_mesh_connector_wake(struct mesh_domain *domain)
{
	(void)domain;
}

/* Nothing from the other end arrives any more, and the provider gives back what is held here. */
static void fence_complete(struct mesh_fence *fence)
{
	struct chain_end *end = chain_end_of_domain(fence->domain->domain);
	struct chain_post *post;

	assert_true(end->broken); /* others use a link that works, whatever one of them says */
	chain.fences++;
	chain_break(end);
	end->cut = true;
	TAILQ_FOREACH(post, &end->other->posts, entry) {
		post->lost |= !post->delivered;
		post->delivered = true;
	}
	fence->result = 1;
}

/* On verbs it would wait, with process->lock held: there a fence takes steps. */
void __wrap_mesh_remotes_fence(struct mesh_fence *fences, int count);
void __wrap_mesh_remotes_fence(struct mesh_fence *fences, int count)
{
	assert_int_equal(count, 1);
	assert_int_not_equal(fences->domain->provider, MESH_PROVIDER_VERBS_RXM);
	if (chain.fences_fail)
		fences->result = -EMFILE;
	else
		fence_complete(fences);
}

void __wrap_mesh_fence_begin(struct mesh_fence *fence);
void __wrap_mesh_fence_begin(struct mesh_fence *fence)
{
	assert_int_equal(fence->domain->provider, MESH_PROVIDER_VERBS_RXM);
	chain.fences_begun++;
}

bool __wrap_mesh_fence_step(struct mesh_fence *fence);
bool __wrap_mesh_fence_step(struct mesh_fence *fence)
{
	if (chain.fence_steps-- > 1)
		return true;
	fence_complete(fence);
	chain.fences_begun--;
	return false;
}

void __wrap_mesh_fence_report(const struct mesh_fence *fence);
void __wrap_mesh_fence_report(const struct mesh_fence *fence)
{
	assert_int_equal(fence->result, 1);
}

void __wrap_mesh_fence_abandon(struct mesh_fence *fence);
void __wrap_mesh_fence_abandon(struct mesh_fence *fence)
{
	assert_non_null(fence->remote);
	chain.fences_begun--;
}

/* ---- losses and time ----------------------------------------------------------------------- */

void chain_break(struct chain_end *end)
{
	struct chain_end *ends[] = {end, end->other};
	struct chain_post *post;
	int i;

	chain_posts_take(FAKE_SEND);
	for (i = 0; i < 2; i++) {
		if (ends[i]->broken)
			continue;
		ends[i]->broken = true;
		TAILQ_FOREACH(post, &ends[i]->posts, entry) {
			post->lost |= !post->delivered;
			post->held = !post->delivered && !post->completed;
			post->delivered = true;
		}
	}
}

static void end_learn(struct chain_end *end)
{
	struct mesh_process *process = &chain.nodes[end->node].process;
	struct mesh_peer_user *user;
	int i;

	end->knows = true;
	end->cut |= !chain_is_relay(end->node);
	mesh_lock_take(&process->lock);
	for (i = 0; i < 2; i++) {
		end->peers[i].state = MESH_PEER_LOST;
		mesh_domain_lock(end->domain);
		LIST_FOREACH(user, &end->peers[i].user_list, entry)
			user->ops->lost(user);
		mesh_remote_lose(end->domain, end->remote);
		mesh_domain_unlock(end->domain);
	}
	mesh_lock_release(&process->lock);
	chain_posts_take(FAKE_SEND);
}

bool chain_learn_step(void)
{
	struct chain_end *end;

	for (end = chain.ends; end < chain.ends + chain_num_ends(); end++) {
		if (!end->broken || end->knows)
			continue;
		end_learn(end);
		return true;
	}
	return false;
}

void chain_time_step(uint64_t ms)
{
	struct timespec pause = {.tv_sec = (time_t)(ms / 1000),
				 .tv_nsec = (long)(ms % 1000 * 1000000)};
	int i;

	nanosleep(&pause, NULL);
	for (i = 1; i < chain.num_nodes - 1; i++) {
		struct mesh_process *process = &chain.nodes[i].process;

		mesh_lock_take(&process->lock);
		mesh_circuits_tick(process, mesh_clock_ms());
		mesh_timers_run(&process->engine.timers, mesh_clock_ms());
		mesh_lock_release(&process->lock);
		chain_poll(chain.nodes[i].left);
		chain_poll(chain.nodes[i].right);
	}
	chain_poll(chain.nodes[0].right);
	chain_poll(chain.nodes[chain.num_nodes - 1].left);
}

int chain_circuits(int node)
{
	struct mesh_circuit *circuit;
	int count = 0;

	LIST_FOREACH(circuit, &chain.nodes[node].process.relay->circuits, entry)
		count++;
	return count;
}

/* ---- a run --------------------------------------------------------------------------------- */

static void nothing(struct mesh_timer *timer, uint64_t now_ms)
{
	(void)timer;
	(void)now_ms;
}

MESH_NOT_ANALYSED
static void node_open(int i)
{
	struct mesh_process *process = &chain.nodes[i].process;

	mesh_lock_init(&process->lock);
	process->config.eager_limit_bytes = CHAIN_PAYLOAD_MAX;
	process->config.relay_memory_bytes = MEMORY;
	strcpy(process->config.relay, "any");
	process->counters = &process->own_counters;
	process->engine.wake_fd = process->engine.epoll_fd = -1;
	process->node_id = CHAIN_NODE_ID(i);
	process->name[0] = (char)('a' + i);
	if (!chain_is_relay(i))
		return;
	mesh_lock_take(&process->lock);
	assert_int_equal(mesh_relay_open(process, 0), 0);
	process->relay->neighbours = (struct mesh_neighbours *)&chain; /* never looked into */
	mesh_lock_release(&process->lock);
}

static void end_open(int node, int link, struct chain_end *end, enum mesh_provider_id provider)
{
	int i;

	end->node = node;
	end->link = link;
	end->other = &chain.ends[4 * link + 1 - (end - chain.ends)];
	end->domain = fake_domain_open(provider);
	end->remote = fake_remote_open(end->domain, PORT);
	TAILQ_INIT(&end->posts);
	for (i = 0; i < 2; i++) {
		struct mesh_peer *peer = &end->peers[i];

		TAILQ_INIT(&end->frames[i]);
		peer->process = &chain.nodes[node].process;
		peer->domain = end->domain;
		peer->remote = end->remote;
		peer->watch.fd = -1;
		peer->timer.expired = nothing;
		peer->incoming = i == 1;
		peer->eager_limit = CHAIN_PAYLOAD_MAX;
		peer->state = MESH_PEER_UP;
		memcpy(peer->name, chain.nodes[2 * link + 1 - node].process.name,
		       sizeof(peer->name));
		peer->node_id = CHAIN_NODE_ID(2 * link + 1 - node);
	}
}

void chain_open(int num_relays)
{
	enum mesh_provider_id provider;
	int i;

	memset(&chain, 0, sizeof(chain));
	fake_reset();
	chain_wire_reset();
	chain.num_nodes = num_relays + 2;
	fake.rx_size = RECEIVES;
	for (i = 0; i < chain.num_nodes; i++)
		node_open(i);
	for (i = 0; i < chain.num_nodes - 1; i++) {
		provider = i % 2 ? MESH_PROVIDER_VERBS_RXM : MESH_PROVIDER_TCP;
		fake.cq_data_size = provider == MESH_PROVIDER_TCP ? 8 : 4;
		end_open(i, i, &chain.ends[2 * i], provider);
		end_open(i + 1, i, &chain.ends[2 * i + 1], provider);
		chain.nodes[i].right = &chain.ends[2 * i];
		chain.nodes[i + 1].left = &chain.ends[2 * i + 1];
	}
	fake.before = chain_posts_take;
}

static void end_close(struct chain_end *end)
{
	struct chain_frame *frame;
	struct chain_post *post;
	int i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(end->peers[i].users, 0);
		while ((frame = TAILQ_FIRST(&end->frames[i]))) {
			TAILQ_REMOVE(&end->frames[i], frame, entry);
			free(frame);
		}
	}
	while ((post = TAILQ_FIRST(&end->posts))) {
		assert_true(post->completed);
		chain_post_free(end, post);
	}
	mesh_remote_close(end->domain, end->remote);
	mesh_domain_close(end->domain);
}

MESH_NOT_ANALYSED
void chain_close(void)
{
	int i;

	chain_posts_take(FAKE_SEND);
	fake.before = NULL;
	assert_int_equal(chain.fences_begun, 0);
	for (i = 0; i < chain.num_nodes; i++) {
		struct mesh_process *process = &chain.nodes[i].process;

		mesh_lock_take(&process->lock);
		if (chain_is_relay(i)) {
			assert_int_equal(chain_circuits(i), 0);
			assert_int_equal(process->relay->memory, 0);
			mesh_relay_close(process);
		}
		mesh_lock_release(&process->lock);
	}
	for (i = 0; i < chain_num_ends(); i++)
		end_close(&chain.ends[i]);
	for (i = 0; i < chain.num_nodes; i++)
		mesh_lock_destroy(&chain.nodes[i].process.lock);
	assert_int_equal(fake_teardown(), 0);
}
