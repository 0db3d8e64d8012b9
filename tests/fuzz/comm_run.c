/* SPDX-License-Identifier: Apache-2.0 */
/* comm_run.c - the machine below fuzz_comm.c, and what is checked of whatever the comms do. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <rdma/fi_errno.h>

#include "base/compiler.h"
#include "fabric/buffer.h"
#include "nic/addr.h"
#include "transport/path.h"

#include "comm_run.h"

struct comm_run run;
static uint8_t untouched[NEAR]; /* FILL */

/* ---- the machine --------------------------------------------------------------------------- */

/*
 * A comm whose operations have not ended when its time is over keeps its memory, because the
 * provider may still use it. This keeps it from being reported as a leak.
 */
void lines_read(enum mesh_log_level level, const char *file, int line, const char *text)
{
	static const void *kept[4096];
	static size_t num_kept;

	for (int i = 0; i < COMMS && strstr(text, "its memory stays allocated"); i++)
		kept[num_kept++ % (sizeof(kept) / sizeof(kept[0]))] = run.opened[i];
}

/* ---- the input ----------------------------------------------------------------------------- */

/* A comm that lives, or NULL. */
struct mesh_comm *take_comm(int *index)
{
	*index = (int)(take(1) % COMMS);
	if (!run.comms[*index])
		*index = !*index;
	return run.comms[*index];
}

struct mesh_path *take_path(struct mesh_comm *comm)
{
	return &comm->paths[take(1) % (uint32_t)comm->num_paths];
}

struct mesh_peer *take_peer(void)
{
	uint32_t i = take(1) % (uint32_t)(fixture.num_paths + run.num_lives);

	return i < (uint32_t)fixture.num_paths ? &fixture.peers[i]
					       : &run.lives[i - (uint32_t)fixture.num_paths];
}

/* Often the id of a path, or one that it had in an earlier life. */
uint32_t take_id(void)
{
	uint32_t kind = take(1);
	struct mesh_comm *comm;
	int i;

	if (kind % 8 == 7)
		return take(4);
	if (kind % 8 == 6 && run.num_old_ids)
		return run.old_ids[take(1) % (uint32_t)(run.num_old_ids < OLD_IDS ? run.num_old_ids
										  : OLD_IDS)];
	comm = take_comm(&i);
	return comm ? take_path(comm)->sink.id : 0;
}

/* Most are near those of the requests that are posted. */
uint32_t take_seq(const struct mesh_comm *comm)
{
	uint32_t byte = take(1);

	if (byte == 255 || !comm)
		return take(4);
	return byte < 128 ? comm->next_seq - 1 - byte % 4 : comm->next_seq + byte % 64 - 40;
}

/* ---- what the comms do --------------------------------------------------------------------- */

char *slot_data(const struct slot *slot)
{
	return fixture_memory + (size_t)(slot - run.slots) * STRIDE + GUARD;
}

static struct slot *slot_find(int comm, uint32_t seq)
{
	for (int i = 0; i < SLOTS; i++) {
		if (run.slots[i].request && run.slots[i].comm == comm && run.slots[i].seq == seq)
			return &run.slots[i];
	}
	return NULL;
}

static int index_of(const struct mesh_comm *comm)
{
	check(comm == run.comms[0] || comm == run.comms[1]);
	return comm == run.comms[1];
}

/* Outside of @size bytes from the slot's data on, near it, nothing was written. */
void slot_bounds_check(const struct slot *slot, size_t size)
{
	const char *near = slot_data(slot) - GUARD;
	size_t behind = GUARD + size;

	check(!memcmp(near, untouched, GUARD));
	check(behind >= NEAR || !memcmp(near + behind, untouched, NEAR - behind));
}

void slots_check(void)
{
	const struct slot *slot;

	for (slot = run.slots; !run.sending && slot < run.slots + SLOTS; slot++) {
		if (slot->over)
			check(!memcmp(slot_data(slot) - GUARD, slot->after, NEAR));
		else if (slot->used)
			slot_bounds_check(slot, slot->size);
	}
}

/*
 * A grant covers a receive that is posted, whose memory is registered for the path. One that waited
 * for the provider may leave after its receive is complete: it covers what that receive had.
 */
static void grant_check(int comm, uint32_t seq, const struct mesh_grant *grant, int num_paths)
{
	const struct slot *slot = slot_find(comm, seq);
	const char *data;
	int i, k;

	check(mesh_seq_before(seq, run.comms[comm]->next_seq));
	if (slot) /* less for one that is half written */
		check(grant->size <= slot->size);
	for (i = 0; i < num_paths && grant->size; i++) {
		data = (const char *)(uintptr_t)grant->targets[i].address;
		check(data >= fixture_memory && data < fixture_memory + FIXTURE_MEMORY);
		check(slot ? data == slot_data(slot)
			   : (size_t)(data - fixture_memory) % STRIDE == GUARD);
		check(grant->size <= STRIDE - GUARD);
		for (k = 0; k < fake.num_mrs; k++) {
			if (fake.mrs[k].open && fake.mrs[k].key == grant->targets[i].key)
				break;
		}
		check(k < fake.num_mrs && fake.mrs[k].data == fixture_memory);
	}
}

static void send_learn(const struct fake_post *post)
{
	const struct mesh_buffer *buffer = mesh_buffer_of_op(post->context);
	const struct mesh_message_header *header = mesh_message_check(post->buffer, post->size);
	const struct mesh_path *path = buffer->owner;
	struct mesh_grant grant;
	size_t size;

	check(header);
	if (header->type != MESH_MESSAGE_GRANT)
		return;
	size = mesh_grant_size(header->paths);
	for (int i = 0; i < header->count; i++) {
		memcpy(&grant, (const uint8_t *)(header + 1) + (size_t)i * size, size);
		grant_check(index_of(path->comm), header->seq + (uint32_t)i, &grant, header->paths);
	}
}

/* A write reads from a send that is posted, and goes where a grant of that message allows. */
static void write_learn(const struct fake_post *post)
{
	const struct mesh_segment *segment =
		mesh_container_of(post->context, struct mesh_segment, op);
	const struct mesh_request *request = segment->request;
	int comm = index_of(request->comm), i;
	const struct slot *slot = slot_find(comm, request->seq);
	const struct granted *grant;
	uint64_t offset;

	check(slot && slot->request == request);
	offset = (uint64_t)((char *)post->buffer - slot_data(slot));
	check(offset <= slot->size && post->size <= slot->size - offset);
	for (i = 0; i < GRANTS; i++) {
		grant = &run.grants[i];
		if (grant->key == post->key && grant->comm == comm && grant->seq == request->seq &&
		    post->address == grant->address + offset && slot->size <= grant->size)
			return;
	}
	check(run.num_grants > GRANTS); /* else there was none */
}

static void reads_empty(void)
{
	char bytes[4096];

	if (!machine.said)
		return;
	machine.said = false;
	for (int i = 0; i < fixture.num_paths; i++)
		while (recv(run.reads[i], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			continue;
	for (int i = 0; i < run.num_lives; i++)
		while (recv(run.reads[FIXTURE_PATHS + i], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			continue;
}

void learn(void)
{
	for (; run.seen_sends < fake.sends.num; run.seen_sends++)
		send_learn(&fake.sends.posts[run.seen_sends]);
	for (; run.seen_writes < fake.writes.num; run.seen_writes++)
		write_learn(&fake.writes.posts[run.seen_writes]);
	reads_empty();
	check(!mesh_lock_held(&fixture.setup.process.lock));
	for (int i = 0; i < COMMS; i++)
		check(!run.comms[i] || !mesh_lock_held(&run.comms[i]->lock));
	for (int i = 0; i < fixture.num_paths; i++)
		check(!mesh_lock_held(&fixture.domains[i]->lock));
}

/* ---- operations end ------------------------------------------------------------------------ */

void forget(void)
{
	if (fake.read < fake.completed)
		return;
	fake.read = fake.completed = 0;
	posts_forget(&fake.sends, &run.seen_sends);
	posts_forget(&fake.writes, &run.seen_writes);
}

void all_end(bool fails)
{
	fixture_poll();
	forget();
	for (int i = 0; i < 8 && (fake.sends.num || fake.writes.num); i++) {
		posts_end(&fake.sends, fails);
		posts_end(&fake.writes, fails);
		fixture_poll(); /* which may post more */
		learn();
		forget();
	}
}

/* What failed was connected: the provider, or the plugin's connector, makes it anew. */
void connect_again(void)
{
	for (int i = 0; i < fixture.num_paths; i++)
		fixture.peers[i].remote->flow->connected = true;
	for (int i = 0; i < run.num_lives; i++)
		run.lives[i].remote->flow->connected = true;
}

/* While a comm closes: whatever it still posts ends when it polls. */
void polled(enum fake_call call)
{
	if (call != FAKE_CQ_READ || !machine.closing)
		return;
	connect_again();
	forget();
	posts_end(&fake.sends, run.fails);
	posts_end(&fake.writes, run.fails);
}

/* ---- the run ------------------------------------------------------------------------------- */

void run_begin(const uint8_t *data, size_t size)
{
	memset(untouched, FILL, sizeof(untouched));
	memset(&run, 0, sizeof(run));
	machine_begin(data, size);
}

void closing_begin(bool fails)
{
	run.fails = fails;
	machine_hurry(true);
}

void closing_end(void)
{
	machine_hurry(false);
}
