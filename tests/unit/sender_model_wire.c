/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sender_model_wire.c - what is on the way between a receiving comm and the model of its sender.
 *
 * Each link has an order, and the links have none between them. The receiver's provider writes
 * where a grant said, and reports it; a fence cuts the link, and what has not arrived never does.
 */
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "fabric/buffer.h"
#include "fabric/fence.h"
#include "fabric/sink.h"
#include "setup/events.h"

#include "sender_model.h"

/* ---- what arrives -------------------------------------------------------------------------- */

static void message_arrives(int link, const struct item *item)
{
	struct mesh_domain *domain = fixture.domains[link];

	mesh_lock_take(&domain->lock);
	mesh_sink_message(domain, &item->header, item->payload);
	mesh_lock_release(&domain->lock);
}

static void immediate_arrives(int link, const struct mesh_immediate *immediate)
{
	mesh_lock_take(&fixture.domains[link]->lock);
	mesh_sink_written(fixture.domains[link], mesh_immediate_encode(immediate));
	mesh_lock_release(&fixture.domains[link]->lock);
}

/* The provider writes where the grant said, as long as that memory is registered. */
static void write_lands(const struct item *item)
{
	struct message *message = &model.messages[item->seq];
	size_t at = (size_t)item->segment * message->bytes, i;
	size_t size = message->size - at < message->bytes ? message->size - at : message->bytes;
	char *to = (char *)(uintptr_t)item->address;

	for (i = 0; i < (size_t)fake.num_mrs; i++) {
		if (fake.mrs[i].open && fake.mrs[i].key == item->key)
			break;
	}
	assert_true(i < (size_t)fake.num_mrs);
	assert_ptr_equal(to, area_of((int)item->seq) + at);
	for (i = 0; i < size; i++)
		to[i] = (char)byte_of((int)item->seq, at + i);
	message->segments[item->segment].landed = message->segments[item->segment].arrived = true;
}

/* It is true: what it says to be complete is. MESSAGES are less than it can count. */
static void acked_check(uint8_t acked)
{
	const struct mesh_request *request;
	uint32_t i;

	_Static_assert(MESSAGES <= MESH_ACKED_MASK, "one word for each number of messages");
	for (i = 0; acked && i < (acked & MESH_ACKED_MASK); i++) {
		request = model.messages[i].request;
		assert_true(model.messages[i].done || (request && !mesh_request_is_open(request)));
	}
}

static void report_arrives(const struct item *item)
{
	const struct mesh_message_header *header = &item->header;
	size_t size = mesh_grant_size(header->paths);
	uint32_t posted = header->seq + header->count, i;

	if (posted > model.posted)
		model.posted = posted;
	acked_check(header->acked);
	if (header->paths < model.grant_paths)
		return;
	for (i = 0; i < header->count; i++) {
		struct message *message = &model.messages[header->seq + i];

		message->granted = true;
		message->grant_paths = header->paths;
		memcpy(&message->grant, item->payload + i * size, size);
		/* That of one that is half written is of the message. */
		assert_true(message->grant.size == message->room ||
			    message->grant.size == message->size);
	}
}

static void late_keep(int link, const struct item *item)
{
	int which = model.num_late < FRAMES ? model.num_late++ : (int)roll(FRAMES);

	model.late[which] = (struct late){link, item->seq, item->immediate};
}

static void item_arrives(int link, const struct item *item)
{
	bool again = !roll(8);

	counts.twice += again;
	switch (item->kind) {
	case ITEM_PLAIN:
		write_lands(item);
		break;
	case ITEM_WRITE:
		write_lands(item);
		immediate_arrives(link, &item->immediate);
		if (again)
			immediate_arrives(link, &item->immediate);
		if (!roll(8))
			late_keep(link, item);
		break;
	case ITEM_MESSAGE:
		message_arrives(link, item);
		if (again)
			message_arrives(link, item);
		break;
	case ITEM_REPORT:
		if (model.links[link].up)
			report_arrives(item);
		break;
	}
}

static bool item_take(int link, struct item *item)
{
	struct link *of = &model.links[link];

	if (!of->num)
		return false;
	*item = of->items[of->first];
	of->first = (of->first + 1) % ITEMS;
	of->num--;
	return true;
}

struct item *item_add(int link)
{
	struct link *of = &model.links[link];
	struct item *item = &of->items[(of->first + of->num++) % ITEMS];

	assert_true(of->num <= ITEMS);
	memset(item, 0, offsetof(struct item, payload));
	item->id = of->id;
	item->token = of->token;
	return item;
}

void step_arrive(void)
{
	int link = (int)roll((uint32_t)model.num_links);
	struct item item;

	if (item_take(link, &item))
		item_arrives(link, &item);
}

/* ---- fences -------------------------------------------------------------------------------- */

void __wrap_mesh_remotes_fence(struct mesh_fence *fences, int count);
void __wrap_mesh_fence_drain(const struct mesh_fence *fence, const char *who);

/*
 * The provider's connection is cut: the first bytes of what was on the way are there already, and
 * the rest never comes; but an immediate of it may, as if the provider had kept it.
 */
static void link_cut(int link)
{
	struct item item;
	bool arrives = true;

	while (item_take(link, &item)) {
		arrives = arrives && roll(3);
		if (arrives)
			item_arrives(link, &item);
		else if (item.kind == ITEM_WRITE)
			late_keep(link, &item);
	}
	counts.fenced++;
}

void __wrap_mesh_remotes_fence(struct mesh_fence *fences, int count)
{
	int i, link;

	reports_learn();
	for (i = 0; i < count; i++) {
		for (link = 0; fixture.domains[link] != fences[i].domain; link++)
			continue;
		link_cut(link);
		fences[i].result = 1;
	}
}

void __wrap_mesh_fence_drain(const struct mesh_fence *fence, const char *who)
{
	(void)fence;
	(void)who;
}

/*
 * One whose bytes have not come does so only once the path's id has ended: before that a connection
 * brings both, or nothing. Others may come as long as no later message has the same number.
 */
void step_late(void)
{
	const struct mesh_path *path;
	const struct late *late;
	bool named;

	if (!model.num_late)
		return;
	late = &model.late[roll((uint32_t)model.num_late)];
	path = &model.comm->paths[late->link];
	named = path->state != MESH_PATH_DOWN &&
		(path->sink.id & (MESH_COMM_IDS - 1)) == late->immediate.comm;
	if (named && (!model.messages[late->seq].done ||
		      (uint32_t)model.received > late->seq + (1u << MESH_IMMEDIATE_SEQ_BITS)))
		return;
	immediate_arrives(late->link, &late->immediate);
	counts.late++;
}

/* ---- what the receiver sends --------------------------------------------------------------- */

void reports_learn(void)
{
	for (; model.seen_sends < fake.sends.num; model.seen_sends++) {
		const struct fake_post *post = &fake.sends.posts[model.seen_sends];
		const struct mesh_buffer *buffer = mesh_buffer_of_op(post->context);
		const struct mesh_path *path = buffer->owner;
		struct item *item = item_add((int)(path - model.comm->paths));

		item->kind = ITEM_REPORT;
		memcpy(&item->header, post->buffer, sizeof(item->header));
		assert_true(item->header.length <= sizeof(item->payload));
		memcpy(item->payload, post->buffer + sizeof(item->header), item->header.length);
	}
}

/* What it has of a message is true, and nothing more comes over the lost paths. */
static void have_check(const struct mesh_frame_have *have, const struct mesh_frame_resume *resume)
{
	const struct message *message = &model.messages[have->seq];
	int i, k;

	assert_int_equal(have->seq, resume->seq);
	assert_int_equal(have->round, resume->round);
	for (i = 0; i < message->num; i++) {
		if (have->complete || have->arrived[0] >> i & 1)
			assert_true(message->segments[i].landed);
	}
	for (i = 0; i < model.num_links; i++) {
		for (k = 0; resume->dead >> i & 1 && k < model.links[i].num; k++) {
			const struct item *item =
				&model.links[i].items[(model.links[i].first + k) % ITEMS];

			assert_true(item->kind == ITEM_REPORT || item->id != resume->ids[i]);
		}
	}
}

/* Reads what came over a control connection; @resume: what it may answer, or NULL. */
struct mesh_frame frames_read(int link, const struct mesh_frame_resume *resume)
{
	struct mesh_frame frame, found = {.header.type = 0};
	uint8_t bytes[8192];
	ssize_t n, at = 0;
	int size;

	n = recv(model.links[link].read_end, bytes, sizeof(bytes), MSG_DONTWAIT);
	for (; at < n; at += size) {
		size = mesh_frame_decode(bytes + at, (size_t)(n - at), &frame);
		assert_true(size > 0);
		if (frame.header.type == MESH_FRAME_HAVE) {
			assert_non_null(resume);
			have_check(&frame.have, resume);
			counts.answers++;
			if (model.num_answers == FRAMES)
				continue;
			model.answers[model.num_answers].link = link;
			model.answers[model.num_answers++].frame = frame;
		} else if (frame.header.type == MESH_FRAME_ACCEPT ||
			   (frame.header.type == MESH_FRAME_REFUSE && frame.refuse.comm)) {
			found = frame;
		}
	}
	return found;
}

void frame_arrives(struct mesh_peer *peer, enum mesh_frame_type type, struct mesh_frame *frame)
{
	struct mesh_frame arrived;
	size_t size = mesh_frame_finish(frame, type);

	assert_int_equal(mesh_frame_decode(frame, size, &arrived), size);
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_setup_events.frames[type](peer, &arrived);
	mesh_lock_release(&fixture.setup.process.lock);
}
