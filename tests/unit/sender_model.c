/* SPDX-License-Identifier: Apache-2.0 */
/* sender_model.c - what the sender of a receiving comm does, as far as the receiver sees it. */
#include <string.h>

#include "control/peer.h"

#include "sender_model.h"

struct sender_model model;
struct sender_model_counts counts;

uint32_t roll(uint32_t sides)
{
	model.random ^= model.random << 13;
	model.random ^= model.random >> 7;
	model.random ^= model.random << 17;
	return (uint32_t)(model.random >> 20) % sides;
}

int link_choose(int below)
{
	int i, link = (int)roll((uint32_t)below);

	for (i = 0; i < below; i++) {
		if (model.links[(link + i) % below].up)
			return (link + i) % below;
	}
	return -1;
}

static void message_send(int link, enum mesh_message_type type, int seq, const void *payload,
			 size_t length)
{
	struct item *item = item_add(link);

	item->kind = ITEM_MESSAGE;
	item->header = (struct mesh_message_header){
		.type = (uint8_t)type,
		.comm = item->id,
		.token = item->token,
		.seq = (uint32_t)seq,
		.length = (uint32_t)length,
		.size = type == MESH_MESSAGE_WRITTEN ? (uint32_t)model.messages[seq].size : 0,
	};
	if (length)
		memcpy(item->payload, payload, length);
}

static void data_send(int seq, int link)
{
	uint8_t payload[FIXTURE_EAGER_LIMIT];
	size_t i;

	for (i = 0; i < model.messages[seq].size; i++)
		payload[i] = byte_of(seq, i);
	message_send(link, MESH_MESSAGE_DATA, seq, payload, model.messages[seq].size);
}

static void written_send(int seq, uint32_t segment, int link)
{
	const struct mesh_message_written written = {segment, (uint32_t)model.messages[seq].num, 0};

	message_send(link, MESH_MESSAGE_WRITTEN, seq, &written, sizeof(written));
}

static bool all_are(const struct message *message, enum segment_state state)
{
	int i;

	for (i = 0; i < message->num && message->segments[i].state == state; i++)
		continue;
	return message->sent && i == message->num;
}

static bool any_is(const struct message *message, enum segment_state state)
{
	int i;

	for (i = 0; i < message->num && message->segments[i].state != state; i++)
		continue;
	return i < message->num;
}

static bool sender_is_done(const struct message *message)
{
	return is_small(message) ? message->sent : all_are(message, ACKED);
}

/* Announces all segments of a message whose writes have arrived. */
static void announce_again(int seq)
{
	uint32_t i;

	for (i = 0; i < (uint32_t)model.messages[seq].num; i++)
		written_send(seq, i, link_choose(model.num_links));
	model.messages[seq].announce_again = false;
}

static void acked(int seq)
{
	struct message *message = &model.messages[seq];

	if (message->announce_again && all_are(message, ACKED) && link_choose(model.num_links) >= 0)
		announce_again(seq);
}

/* A path was lost: what it may have dropped, and does no harm twice, goes over the others. */
static void resend(void)
{
	int seq = (int)model.posted - MESH_COMM_REQUESTS;

	if (!model.resending || link_choose(model.num_links) < 0)
		return;
	model.resending = false;
	for (seq = seq < 0 ? 0 : seq; seq < model.sent; seq++) {
		struct message *message = &model.messages[seq];

		if (is_small(message) && message->sent)
			data_send(seq, link_choose(model.num_links));
		else if (!is_small(message) && message->sent && model.immediate_bits < 64)
			message->announce_again = true;
		if (!is_small(message))
			acked(seq);
	}
}

static void segment_post(int seq, int index)
{
	struct message *message = &model.messages[seq];
	struct segment *segment = &message->segments[index];
	bool last = index == message->num - 1;
	int link = link_choose(message->grant_paths);
	struct item *item;

	if (link < 0)
		return;
	counts.rewritten += segment->state == DOUBT;
	segment->state = FLYING;
	segment->link = link;
	segment->arrived = false;
	item = item_add(link);
	item->kind =
		mesh_immediate_suffices(model.immediate_bits, message->size == message->grant.size)
			? ITEM_WRITE
			: ITEM_PLAIN;
	item->seq = (uint32_t)seq;
	item->segment = index;
	item->address = message->grant.targets[link].address + (size_t)index * message->bytes;
	item->key = message->grant.targets[link].key;
	item->immediate = (struct mesh_immediate){
		.comm = item->id & (MESH_COMM_IDS - 1),
		.seq = (uint32_t)seq & 0x3f,
		.segment = (uint32_t)index,
		.last = last,
		.size = model.immediate_bits == 64 ? (uint32_t)message->size : 0,
	};
	if (item->kind == ITEM_PLAIN)
		written_send(seq, (uint32_t)index, link);
}

static void large_push(int seq)
{
	struct message *message = &model.messages[seq];
	size_t lines = (message->size + 127) / 128;
	int i;

	if (!message->granted) {
		i = link_choose(model.num_links);
		if (model.eager_run && i >= 0) {
			message_send(i, MESH_MESSAGE_WANT, model.sent - 1, NULL, 0);
			model.eager_run = 0;
		}
		return;
	}
	if (!message->sent) {
		message->bytes = (lines + SEGMENTS - 1) / SEGMENTS * 128 + 128 * roll(8);
		message->num = (int)((message->size + message->bytes - 1) / message->bytes);
		message->sent = true;
	}
	if (any_is(message, DOUBT) && !message->settled)
		return; /* the receiver is being asked */
	for (i = 0; i < message->num; i++) {
		if (message->segments[i].state == UNSENT || message->segments[i].state == DOUBT) {
			segment_post(seq, i);
			return;
		}
	}
}

void step_push(void)
{
	int first = 0, seq, i, count = 1 + (int)roll(4);

	resend();
	while (first < model.sent && sender_is_done(&model.messages[first]))
		first++;
	if (model.sent < MESSAGES && model.sent < first + MESH_COMM_REQUESTS)
		model.sent++;
	for (i = 0; i < count && first < model.sent; i++) {
		seq = first + (int)roll((uint32_t)(model.sent - first));
		if (!is_small(&model.messages[seq])) {
			large_push(seq);
		} else if (!model.messages[seq].sent && link_choose(model.num_links) >= 0 &&
			   (uint32_t)seq < model.posted + MESH_EAGER_WINDOW) {
			data_send(seq, link_choose(model.num_links));
			model.messages[seq].sent = true;
			model.eager_run++;
		}
	}
}

/* The sender's writes complete. */
void step_acknowledge(void)
{
	int seq, i;

	for (seq = 0; seq < model.sent; seq++) {
		struct message *message = &model.messages[seq];

		for (i = 0; i < message->num; i++) {
			struct segment *segment = &message->segments[i];

			if (segment->state != FLYING || !segment->arrived || roll(2))
				continue;
			segment->state = ACKED;
			acked(seq);
		}
	}
}

/* The sender stops a path. Of what it has posted, the end never leaves its node. */
void sender_loses(int link)
{
	struct link *of = &model.links[link];
	int seq, i;

	if (!of->up)
		return;
	of->up = of->unaware = of->greeted = false;
	of->num -= of->num ? (int)roll((uint32_t)of->num) : 0;
	model.round++;
	for (seq = 0; seq < model.sent; seq++) {
		struct message *message = &model.messages[seq];

		message->asked = false;
		for (i = 0; i < message->num; i++) {
			if (message->segments[i].state != FLYING ||
			    message->segments[i].link != link)
				continue;
			message->segments[i].state = DOUBT;
			message->settled = false;
		}
	}
	model.eager_run++;
	model.resending = true;
}

/* Asks about the messages that are in doubt. */
void step_ask(void)
{
	int seq, i, link;

	for (seq = 0; seq < model.sent; seq++) {
		struct message *message = &model.messages[seq];
		struct frame_on_way *question = &model.questions[model.num_questions];

		link = link_choose(model.num_links);
		if (link < 0 || model.num_questions == FRAMES || message->asked ||
		    message->settled || !any_is(message, DOUBT) || any_is(message, FLYING))
			continue;
		memset(question, 0, sizeof(*question));
		question->link = link;
		question->frame.resume.to_comm = model.links[link].id;
		question->frame.resume.seq = (uint32_t)seq;
		question->frame.resume.round = model.round;
		for (i = 0; i < model.num_links; i++) {
			if (model.links[i].up || !model.links[i].id)
				continue;
			question->frame.resume.dead |= 1u << i;
			question->frame.resume.ids[i] = model.links[i].id;
		}
		message->asked = true;
		model.num_questions++;
	}
}

void step_question(bool faults)
{
	struct frame_on_way question;
	int which, i;

	if (!model.num_questions)
		return;
	which = (int)roll((uint32_t)model.num_questions);
	question = model.questions[which];
	if (!faults || roll(3)) /* else it comes once more */
		model.questions[which] = model.questions[--model.num_questions];
	if (model.links[question.link].peer->state != MESH_PEER_UP)
		return; /* the sender will learn that this link is lost */
	frame_arrives(model.links[question.link].peer, MESH_FRAME_RESUME, &question.frame);
	for (i = 0; i < model.num_links; i++)
		frames_read(i, &question.frame.resume);
}

void step_answer(bool faults)
{
	struct frame_on_way answer;
	struct message *message;
	int which, i;

	if (!model.num_answers)
		return;
	which = (int)roll((uint32_t)model.num_answers);
	answer = model.answers[which];
	if (!faults || roll(3))
		model.answers[which] = model.answers[--model.num_answers];
	message = &model.messages[answer.frame.have.seq];
	if (!message->asked || answer.frame.have.round != model.round) {
		counts.old_answers++;
		return;
	}
	message->asked = false;
	message->settled = true;
	for (i = 0; i < message->num; i++) {
		if (message->segments[i].state == DOUBT &&
		    (answer.frame.have.complete || answer.frame.have.arrived[0] >> i & 1))
			message->segments[i].state = ACKED;
	}
	acked((int)answer.frame.have.seq);
}
