/* SPDX-License-Identifier: Apache-2.0 */
/* relay_wire.c - what the nodes of relay_chain.h post, until it has arrived and is complete. */
#include <rdma/fi_errno.h>

#include "fabric/sink.h"
#include "relay/circuit.h"

#include "fake_fabric.h"
#include "relay_chain.h"
#include "unit.h"

static int sends_taken, writes_taken, injects_taken;

/* ---- what is posted ------------------------------------------------------------------------ */

struct chain_end *chain_end_of_domain(const void *domain)
{
	int i;

	for (i = 0; i < chain_num_ends(); i++) {
		if (chain.ends[i].domain && (const void *)chain.ends[i].domain->domain == domain)
			return &chain.ends[i];
	}
	fail_msg("a post of an unknown domain");
	return NULL;
}

static struct chain_post *post_new(struct chain_end *end, const void *bytes, size_t size)
{
	struct chain_post *post = calloc(1, sizeof(*post));

	assert_non_null(post);
	post->domain = end->domain->domain;
	post->size = size;
	if (bytes) {
		post->bytes = malloc(size);
		memcpy(post->bytes, bytes, size);
	}
	post->lost = post->delivered = end->broken;
	post->held = end->broken && !end->cut;
	TAILQ_INSERT_TAIL(&end->posts, post, entry);
	return post;
}

void chain_post_free(struct chain_end *end, struct chain_post *post)
{
	TAILQ_REMOVE(&end->posts, post, entry);
	free(post->bytes);
	free(post);
}

static void post_take(const struct fake_post *seen, bool is_write)
{
	struct chain_end *end = chain_end_of_domain(seen->domain);
	struct chain_post *post = post_new(end, is_write ? NULL : seen->buffer, seen->size);

	post->is_write = is_write;
	post->context = seen->context;
	post->source = seen->buffer;
	post->address = seen->address;
	post->key = seen->key;
	post->completed = !seen->context;
}

void chain_posts_take(enum fake_call call)
{
	static const int most = FAKE_POSTS_MAX / 2;

	(void)call;
	for (; sends_taken < fake.sends.num; sends_taken++)
		post_take(&fake.sends.posts[sends_taken], false);
	for (; writes_taken < fake.writes.num; writes_taken++)
		post_take(&fake.writes.posts[writes_taken], true);
	/* An injected message has its bytes only during the call. */
	for (; injects_taken < fake.injects.num; injects_taken++) {
		fake.injects.posts[injects_taken].buffer = fake.injects.posts[injects_taken].bytes;
		post_take(&fake.injects.posts[injects_taken], false);
	}
	if (fake.sends.num > most)
		fake.sends.num = sends_taken = 0;
	if (fake.writes.num > most)
		fake.writes.num = writes_taken = 0;
	if (fake.injects.num > most)
		fake.injects.num = injects_taken = 0;
}

void chain_message_send(struct chain_end *end, const struct mesh_message_header *header,
			const void *payload)
{
	uint8_t bytes[sizeof(*header) + CHAIN_PAYLOAD_MAX];

	assert_true(header->length <= CHAIN_PAYLOAD_MAX);
	chain_posts_take(FAKE_SEND);
	memcpy(bytes, header, sizeof(*header));
	if (header->length)
		memcpy(bytes + sizeof(*header), payload, header->length);
	post_new(end, bytes, sizeof(*header) + header->length)->completed = true;
}

/* ---- what arrives -------------------------------------------------------------------------- */

/* The relay's memory that the write names. */
static uint8_t *memory_find(const struct chain_post *write)
{
	int i;

	for (i = 0; i < fake.num_mrs; i++) {
		const struct fake_mr *mr = &fake.mrs[i];
		uint64_t begin = (uintptr_t)mr->data;

		if (mr->open && mr->key == write->key && write->address >= begin &&
		    write->address + write->size <= begin + mr->size)
			return (uint8_t *)(uintptr_t)write->address;
	}
	fail_msg("a write to no memory");
	return NULL;
}

static void write_deliver(struct chain_end *to, struct chain_post *write)
{
	if (chain_is_relay(to->node)) /* the ends look at frames only */
		memcpy(memory_find(write), write->source, write->size);
}

static void message_deliver(struct chain_end *to, const struct chain_post *post)
{
	const struct mesh_message_header *header = mesh_message_check(post->bytes, post->size);

	assert_non_null(header);
	if (!chain_is_relay(to->node))
		return;
	mesh_domain_lock(to->domain);
	mesh_sink_message(to->domain, header, header + 1);
	mesh_domain_unlock(to->domain);
	chain_posts_take(FAKE_SEND);
}

/* The first that has not arrived: a connection keeps the order. */
static struct chain_post *undelivered(const struct chain_end *end)
{
	struct chain_post *post;

	TAILQ_FOREACH(post, &end->posts, entry) {
		if (!post->delivered)
			break;
	}
	return post;
}

bool chain_deliver_step(void)
{
	struct chain_end *end;
	struct chain_post *post;

	chain_posts_take(FAKE_SEND);
	for (end = chain.ends; end < chain.ends + chain_num_ends(); end++) {
		post = undelivered(end);
		if (!post)
			continue;
		post->delivered = true;
		if (post->is_write)
			write_deliver(end->other, post);
		else
			message_deliver(end->other, post);
		if (post->completed)
			chain_post_free(end, post);
		return true;
	}
	return false;
}

/* ---- what completes ------------------------------------------------------------------------ */

void chain_poll(struct chain_end *end)
{
	int turn;

	for (turn = 0; turn < 4; turn++)
		mesh_domain_poll(end->domain);
	assert_int_equal(fake.read, fake.completed);
	end->remote->flow->connected = true; /* a link that breaks is not made anew */
	memset(fake.completions, 0, (size_t)fake.completed * sizeof(fake.completions[0]));
	fake.read = fake.completed = 0;
	chain_posts_take(FAKE_SEND);
}

static bool may_complete(const struct chain_end *end, const struct chain_post *post)
{
	return post->delivered && !post->completed && (!post->held || end->cut);
}

static void post_complete(struct chain_end *end, struct chain_post *post)
{
	if (post->lost) {
		fake_complete_error(post->context, FI_ECONNRESET);
	} else {
		fake_complete(
			&(struct fake_post){.domain = post->domain, .context = post->context});
	}
	chain_post_free(end, post);
	chain_poll(end);
}

bool chain_complete_step(void)
{
	struct chain_post *post;
	struct chain_end *end;

	chain_posts_take(FAKE_SEND);
	for (end = chain.ends; end < chain.ends + chain_num_ends(); end++) {
		TAILQ_FOREACH(post, &end->posts, entry) {
			if (!may_complete(end, post))
				continue;
			post_complete(end, post);
			return true;
		}
	}
	return false;
}

void chain_wire_reset(void)
{
	sends_taken = writes_taken = injects_taken = 0;
}
