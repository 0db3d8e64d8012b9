/* SPDX-License-Identifier: Apache-2.0 */
/* relay_run.c - the process of fuzz_relay.c, its peers, and what is checked of the relay. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "fabric/fence.h"
#include "fabric/poll.h"
#include "relay/relay.h"
#include "setup/setup.h"

#include "relay_run.h"

#define PROCESS_ID 0x1234
#define PORT 999
/* Turns of the engine until a relay without peers must be empty, and milliseconds between two. */
#define END_TURNS 60
#define END_MS 500

struct relay_run relay_run;

/* ---- what the relay sees of other layers ---------------------------------------------------- */

enum mesh_dial_state __real_mesh_dial_look(struct mesh_dial *dial, uint64_t now_ms);

/* A domain may be opening, and its NIC may have lost its carrier. */
static void dial_step(struct mesh_dial *dial)
{
	static const int results[] = {0, 0, 0, 0, 0, -EAGAIN, -ENETDOWN, -ENODEV};

	dial->error = results[take(1) % 8];
	if (dial->error == -EAGAIN)
		return;
	dial->state = dial->error ? MESH_DIAL_DEAD : MESH_DIAL_TRYING;
	if (dial->error)
		return;
	dial->peer = &relay_run.peers[RELAY_NICS + mesh_way_dev(&dial->way)];
	mesh_peer_use(dial->peer);
}

int __wrap_mesh_dial_begin(struct mesh_dial *dial, struct mesh_process *process,
			   const struct mesh_way *way, uint64_t now_ms)
{
	int ret;

	check(dial->state == MESH_DIAL_REST);
	check(way->index >= 0 && mesh_way_dev(way) < RELAY_NICS);
	*dial = (struct mesh_dial){.process = process, .way = *way, .since_ms = now_ms};
	dial->state = MESH_DIAL_OPENING;
	dial_step(dial);
	ret = dial->state == MESH_DIAL_DEAD ? dial->error : 0;
	if (ret)
		mesh_dial_end(dial);
	return ret;
}

enum mesh_dial_state __wrap_mesh_dial_look(struct mesh_dial *dial, uint64_t now_ms)
{
	if (dial->state == MESH_DIAL_OPENING)
		dial_step(dial);
	return dial->peer ? __real_mesh_dial_look(dial, now_ms) : dial->state;
}

void __wrap_mesh_neighbours_ask(struct mesh_neighbours *neighbours)
{
	check(neighbours == &relay_run.neighbours);
}

/* The input says when the relay polls. */
int __wrap_mesh_relay_thread_start(struct mesh_relay *relay)
{
	return 0;
}

void __wrap_mesh_readiness_open(struct mesh_domain *domain)
{
}

/* The thread that connects on verbs would have nothing to do. */
int __wrap_mesh_thread_create(pthread_t *thread, const char *name, void *(*start)(void *),
			      void *arg)
{
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	return 0;
}

void __wrap_mesh_connector_wake(struct mesh_domain *domain)
{
}

static void domain_posts_end(struct fake_posts *posts, const struct mesh_domain *domain)
{
	for (int i = 0; i < posts->num; i++) {
		if (posts->posts[i].domain == domain->domain)
			post_end(&posts->posts[i], true);
	}
}

/* What is in flight there fails: the provider has nothing left of it. */
int __wrap_mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote)
{
	check(remote);
	domain_posts_end(&fake.sends, domain);
	domain_posts_end(&fake.writes, domain);
	return 0;
}

/* On verbs a fence takes steps; this one ends in the first, and is its domain. */
struct mesh_fence *__wrap_mesh_fence_begin(struct mesh_domain *domain, struct mesh_remote *remote)
{
	check(remote && domain->provider == MESH_PROVIDER_VERBS_RXM);
	return (struct mesh_fence *)domain;
}

int __wrap_mesh_fence_step(struct mesh_fence *fence)
{
	struct mesh_domain *domain = (struct mesh_domain *)fence;

	domain_posts_end(&fake.sends, domain);
	domain_posts_end(&fake.writes, domain);
	return 1;
}

void __wrap_mesh_fence_abandon(struct mesh_fence *fence)
{
}

/* The end of the endpoint ends all that is in flight; another one is there at once. */
void __wrap_mesh_endpoint_close(struct mesh_domain *domain)
{
	check(domain->provider == MESH_PROVIDER_VERBS_RXM);
	domain_posts_end(&fake.sends, domain);
	domain_posts_end(&fake.writes, domain);
}

/* ---- checks --------------------------------------------------------------------------------- */

static void domain_is_free(const struct mesh_domain *domain)
{
	check(!mesh_lock_held(&domain->lock));
}

/* The frames that came to a peer are frames. */
static void said_check(int i)
{
	uint8_t *said = relay_run.said[i];
	size_t *num = &relay_run.num_said[i];
	struct mesh_frame frame;
	ssize_t got;
	int taken;

	while ((got = recv(relay_run.reads[i], said + *num, sizeof(relay_run.said[i]) - *num,
			   MSG_DONTWAIT)) > 0) {
		*num += (size_t)got;
		while ((taken = mesh_frame_decode(said, *num, &frame)) > 0) {
			*num -= (size_t)taken;
			memmove(said, said + taken, *num);
		}
		check(!taken);
	}
}

static void side_check(const struct mesh_circuit_side *side)
{
	const struct mesh_passing *passing;
	int count = 0;

	TAILQ_FOREACH(passing, &side->passing, entry)
		count++;
	check(count == side->num_passing && count <= MESH_PASSING_MAX);
	check(!side->peer || side->peer->users > 1);
}

/* The granules that are taken in the next relay are those of segments that we hold. */
static void hop_check(const struct mesh_circuit *circuit)
{
	const struct mesh_hop_segment *segment;
	const struct mesh_held *held;
	uint64_t used = 0;

	for (unsigned int i = 0; circuit->hop.segments && i < MESH_GRANULES; i++) {
		segment = &circuit->hop.segments[i];
		if (segment->state == MESH_HOP_FREE)
			continue;
		held = segment->owner;
		check(held->circuit == circuit);
		check(held == &circuit->held[held->what.granule]);
		for (unsigned int k = i; k < i + segment->granules; k++) {
			check(k < MESH_GRANULES && !(used >> k & 1));
			used |= (uint64_t)1 << k;
		}
	}
	check(used == circuit->hop.used);
}

static void circuit_check(const struct mesh_circuit *circuit)
{
	uint32_t active = 0, slots = 0;
	const struct mesh_held *held;

	check(!mesh_lock_held(&circuit->lock));
	for (held = circuit->held; held < circuit->held + MESH_GRANULES; held++) {
		if (!held->circuit)
			continue;
		check(held->what.length <= MESH_GRANULES * circuit->granule);
		active++;
		slots += (uint32_t)((held->what.length - 1) / circuit->granule + 1);
	}
	check(circuit->num_waiting <= active && circuit->writing <= active);
	check(circuit->counters->used == slots);
	check(mesh_circuit_unfinished(circuit) || active == circuit->num_waiting);
	side_check(&circuit->up);
	side_check(&circuit->down);
	hop_check(circuit);
}

/* What is in flight is read from the memory of a circuit that lives, and goes where it may. */
static void write_check(const struct fake_post *write)
{
	const struct mesh_circuit *circuit;
	const struct mesh_message_relayed *what;
	size_t at;

	LIST_FOREACH(circuit, &relay_run.process->relay->circuits, entry) {
		at = (size_t)((uintptr_t)write->buffer - (uintptr_t)circuit->memory);
		if (at < circuit->granule * MESH_GRANULES)
			break;
	}
	check(circuit && at % circuit->granule == 0);
	check(circuit->held[at / circuit->granule].circuit == circuit);
	what = &circuit->held[at / circuit->granule].what;
	check(write->size == what->length && write->size <= circuit->granule * MESH_GRANULES - at);
	check(write->domain == circuit->down.domain->domain);
	if (!circuit->down.is_relay) {
		check(write->address == what->address && write->key == what->key);
		return;
	}
	at = write->address - circuit->hop.address;
	check(write->key == circuit->hop.key && at % circuit->hop.granule == 0);
	check(at + write->size <= mesh_hop_bytes(&circuit->hop));
}

void relay_check(void)
{
	const struct mesh_relay *relay = relay_run.process->relay;
	const struct mesh_circuit *circuit;
	uint64_t memory = 0;

	check(!mesh_lock_held(&relay_run.process->lock));
	for (int i = 0; i < RELAY_NICS; i++)
		domain_is_free(relay_run.domains[i]);
	LIST_FOREACH(circuit, &relay->circuits, entry) {
		circuit_check(circuit);
		memory += circuit->bytes;
	}
	check(memory == relay->memory && memory <= relay_run.process->config.relay_memory_bytes);
	for (int i = 0; i < fake.writes.num; i++) {
		if (fake.writes.posts[i].context)
			write_check(&fake.writes.posts[i]);
	}
	for (int i = 0; i < RELAY_PEERS && machine.said; i++)
		said_check(i);
	machine.said = false;
}

/* ---- time ----------------------------------------------------------------------------------- */

void relay_poll(void)
{
	int i, turn, idle = 0;

	for (turn = 0; turn < 2000 && idle < 2; turn++) {
		idle = fake.read < fake.completed ? 0 : idle + 1;
		for (i = 0; i < RELAY_NICS; i++)
			mesh_domain_poll(relay_run.domains[i]);
	}
	check_equal(fake.read, fake.completed);
}

void relay_engine(uint64_t ms)
{
	struct mesh_process *process = relay_run.process;

	machine.now_ns += ms * 1000000;
	mesh_lock_take(&process->lock);
	mesh_circuits_tick(process, mesh_clock_ms());
	mesh_timers_run(&process->engine.timers, mesh_clock_ms());
	mesh_lock_release(&process->lock);
}

/* ---- the input ------------------------------------------------------------------------------ */

struct mesh_circuit *relay_circuit_take(void)
{
	struct mesh_circuit *circuit = LIST_FIRST(&relay_run.process->relay->circuits);
	uint32_t i = take(1) % 8;

	while (circuit && i-- && LIST_NEXT(circuit, entry))
		circuit = LIST_NEXT(circuit, entry);
	return circuit;
}

/* ---- peers ---------------------------------------------------------------------------------- */

bool relay_peer_is_incoming(const struct mesh_peer *peer)
{
	return peer < relay_run.peers + RELAY_NICS;
}

int relay_peer_nic(const struct mesh_peer *peer)
{
	return (int)((peer - relay_run.peers) % RELAY_NICS);
}

/* It is used by the fuzzer, and so never freed. */
void relay_peer_enter(struct mesh_peer *peer)
{
	struct mesh_process *process = relay_run.process;
	int nic = relay_peer_nic(peer), ends[2];

	memset(peer, 0, sizeof(*peer));
	check_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	peer->process = process;
	peer->dev = nic;
	peer->domain = relay_run.domains[nic];
	peer->remote = relay_run.remotes[nic];
	peer->watch.fd = ends[0];
	relay_run.reads[peer - relay_run.peers] = ends[1];
	relay_run.num_said[peer - relay_run.peers] = 0;
	peer->incoming = relay_peer_is_incoming(peer);
	peer->control_port = peer->incoming ? 0 : PORT;
	peer->state = MESH_PEER_UP;
	peer->eager_limit = RELAY_EAGER_LIMIT;
	peer->name[0] = (char)('b' + nic);
	mesh_addr_parse("10.7.0.2", &peer->address.addr);
	peer->address.addr.bytes[2] = (uint8_t)nic;
	peer->timer.expired = mesh_peer_tick;
	peer->users = 1;
	mesh_lock_take(&process->lock);
	LIST_INSERT_HEAD(&process->peers, peer, entry);
	mesh_peer_process_set(peer, PROCESS_ID + (uint64_t)nic);
	mesh_link_join(peer);
	mesh_lock_release(&process->lock);
}

void relay_peer_leave(struct mesh_peer *peer)
{
	struct mesh_process *process = relay_run.process;

	mesh_lock_take(&process->lock);
	mesh_peer_lose(peer, "the end");
	mesh_peer_bury(peer);
	mesh_engine_timer_cancel(&process->engine, &peer->timer);
	mesh_peer_process_set(peer, 0);
	LIST_REMOVE(peer, entry);
	mesh_lock_release(&process->lock);
	close(relay_run.reads[peer - relay_run.peers]);
	free(peer->nics);
	free(peer->out);
}

/* ---- a run ---------------------------------------------------------------------------------- */

static void line_drop(enum mesh_log_level level, const char *file, int line, const char *text)
{
}

static void nic_open(int i, enum mesh_provider_id provider)
{
	struct mesh_process *process = relay_run.process;
	struct mesh_endpoint_addr *endpoint = &process->endpoints[i];
	struct sockaddr_storage name;
	struct mesh_addr theirs;
	size_t len;

	relay_run.nics[i] = *fake_nic();
	relay_run.nics[i].ifindex = (unsigned int)i + 1;
	process->nics[i] = &relay_run.nics[i];
	mesh_process_provider_set(process, i, provider);
	mesh_addr_parse("10.7.0.1/24", &endpoint->addr);
	endpoint->addr.bytes[2] = (uint8_t)i;
	endpoint->nic = (uint8_t)i;
	endpoint->provider = provider;
	relay_run.domains[i] = fake_domain_open(provider);
	process->domains[i] = relay_run.domains[i];
	mesh_addr_parse("10.7.0.2", &theirs);
	theirs.bytes[2] = (uint8_t)i;
	len = mesh_addr_to_sockaddr(&theirs, 4321, &name);
	check_equal(mesh_remote_open(relay_run.domains[i], &name, len, &relay_run.remotes[i]), 0);
	relay_run.remotes[i]->flow->connected = true;
	relay_run.neighbours.asking.links[i].ifindex = (unsigned int)i + 1;
	relay_run.neighbours.asking.asked[i].ifindex = (unsigned int)i + 1;
	relay_run.neighbours.asking.asked[i].heard[0] = &relay_run.heard[i];
}

static void process_open(uint32_t options)
{
	struct mesh_process *process = relay_run.process;

	mesh_lock_init(&process->lock);
	process->config.dead_peer_timeout_s = 1;
	process->config.segment_bytes = 1 << 20;
	process->config.eager_limit_bytes = RELAY_EAGER_LIMIT;
	process->config.recovery_timeout_s = 30;
	process->config.relay_memory_bytes = (uint64_t)(options & 4 ? 6 : 96) << 20;
	strcpy(process->config.relay, options & 8 ? "any" : "job");
	process->counters = &process->own_counters;
	process->engine.wake_fd = process->engine.epoll_fd = -1;
	process->events = &mesh_setup_events;
	process->node_id = RELAY_OWN_NODE;
	process->process_id = RELAY_OWN_NODE;
	process->name[0] = 'a';
	process->num_endpoints = process->num_nics = process->num_lasting = RELAY_NICS;
	process->num_devs = RELAY_NICS;
}

void relay_begin(uint32_t options)
{
	static const enum mesh_provider_id providers[] = {MESH_PROVIDER_TCP, MESH_PROVIDER_TCP_RXM,
							  MESH_PROVIDER_VERBS_RXM,
							  MESH_PROVIDER_TCP};

	memset(&relay_run, 0, sizeof(relay_run));
	relay_run.process = &relay_run.setup.process;
	relay_run.holds = options & 32;
	fake_reset();
	fake.rx_size = 16;
	fake.payload_max = MACHINE_PAYLOAD;
	fake.cq_data_size = options & 16 ? 4 : 8;
	mesh_log_sink_set(line_drop);
	process_open(options);
	for (int i = 0; i < RELAY_NICS; i++)
		nic_open(i, providers[options & 3]);
	relay_run.neighbours.self.node_id = relay_run.process->node_id;
	relay_run.neighbours.asking.self = &relay_run.neighbours.self;
	relay_run.neighbours.asking.num_links = RELAY_NICS;
	mesh_lock_take(&relay_run.process->lock);
	check_equal(mesh_relay_open(relay_run.process, RELAY_JOB), 0);
	relay_run.process->relay->neighbours = &relay_run.neighbours;
	mesh_lock_release(&relay_run.process->lock);
	for (int i = 0; i < RELAY_PEERS; i++)
		relay_peer_enter(&relay_run.peers[i]);
}

/* The peers are gone, and what was in flight ends now, or when it is fenced. */
static void relay_drain(void)
{
	const struct mesh_relay *relay = relay_run.process->relay;

	for (int i = 0; i < END_TURNS && !LIST_EMPTY(&relay->circuits); i++) {
		if (!relay_run.holds) {
			posts_end(&fake.sends, i & 1);
			posts_end(&fake.writes, i & 1);
		}
		relay_poll();
		posts_forget(&fake.sends, &relay_run.seen);
		posts_forget(&fake.writes, &relay_run.seen);
		fake.read = fake.completed = 0;
		relay_engine(END_MS);
		relay_check();
	}
	check(LIST_EMPTY(&relay->circuits));
	check(!relay->memory);
}

void relay_end(void)
{
	struct mesh_process *process = relay_run.process;

	mesh_lock_take(&process->lock);
	for (int i = 0; i < RELAY_PEERS; i++)
		mesh_peer_lose(&relay_run.peers[i], "the input is over");
	mesh_lock_release(&process->lock);
	relay_drain();
	for (int i = 0; i < RELAY_PEERS; i++) {
		check_equal(relay_run.peers[i].users, 1);
		relay_peer_leave(&relay_run.peers[i]);
	}
	mesh_lock_take(&process->lock);
	check(LIST_EMPTY(&process->peers) && !process->engine.timers.first);
	mesh_relay_close(process);
	mesh_lock_release(&process->lock);
	for (int i = 0; i < RELAY_NICS; i++) {
		mesh_remote_close(relay_run.domains[i], relay_run.remotes[i]);
		mesh_domain_close(relay_run.domains[i]);
	}
	mesh_lock_destroy(&process->lock);
	fake_teardown();
}
