/* SPDX-License-Identifier: Apache-2.0 */
/* coordinator.c - states of the run, the token, the report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "coordinator.h"
#include "report.h"

#define WORDS_MAX 2000
/*
 * Between the first failure and the end of all: when one rank hangs its peer does not move either,
 * and what each of them says should be in the report.
 */
#define GRACE_NS (1500 * NS_PER_MS)

static void list_pairs(struct coordinator *c)
{
	const struct options *o = c->options;
	size_t n = 0;

	c->num_pairs = o->num_pairs ? o->num_pairs : (size_t)(o->world * (o->world - 1));
	c->pairs = calloc(c->num_pairs, sizeof(*c->pairs));
	c->sides = calloc(c->num_pairs, sizeof(*c->sides));
	c->finished = calloc(c->num_pairs, sizeof(*c->finished));
	if (!c->pairs || !c->sides || !c->finished) {
		fputs("fabric_pingpong: out of memory\n", stderr);
		exit(1);
	}
	if (o->num_pairs) {
		memcpy(c->pairs, o->pairs, o->num_pairs * sizeof(*c->pairs));
		return;
	}
	for (int from = 0; from < o->world; from++) {
		for (int to = 0; to < o->world; to++) {
			if (from == to)
				continue;
			c->pairs[n].from = (uint16_t)from;
			c->pairs[n++].to = (uint16_t)to;
		}
	}
}

void coordinator_open(struct coordinator *coordinator, const struct options *options,
		      struct hub *hub)
{
	memset(coordinator, 0, sizeof(*coordinator));
	coordinator->options = options;
	coordinator->hub = hub;
	coordinator->gather_deadline_ns = now_ns() + options->rendezvous_s * NS_PER_S;
	coordinator->report = report_new();
	list_pairs(coordinator);
}

void coordinator_close(struct coordinator *coordinator)
{
	for (int i = 0; i < OPTIONS_RANKS_MAX; i++)
		free(coordinator->hosts[i]);
	free(coordinator->failure);
	free(coordinator->pairs);
	free(coordinator->sides);
	free(coordinator->finished);
	json_decref(coordinator->report);
}

static const char *host_of(const struct coordinator *c, int rank)
{
	return c->hosts[rank] ? c->hosts[rank] : "?";
}

/* The report lists pairs as soon as the names are known, or when all is over. */
static void report_pairs(struct coordinator *c)
{
	if (json_array_size(json_object_get(c->report, "pairs")))
		return;
	for (size_t i = 0; i < c->num_pairs; i++)
		report_add_pair(c->report, c->pairs[i], host_of(c, c->pairs[i].from),
				host_of(c, c->pairs[i].to));
}

static void end_all(struct coordinator *c, const char *why)
{
	c->state = COORDINATOR_ENDED;
	if (!c->failure)
		c->failure = strdup(why);
	report_pairs(c);
	for (size_t i = 0; i < c->num_pairs; i++)
		if (c->sides[i] < 2)
			report_error(c->report, (long)i,
				     i < c->next_pair ? "not finished" : "not run");
	hub_broadcast(c->hub, FRAME_ABORT, why, strlen(why));
}

void coordinator_abort(struct coordinator *c, const char *why)
{
	if (c->state == COORDINATOR_ENDED)
		return;
	report_error(c->report, -1, why);
	end_all(c, c->failure ? c->failure : why);
}

/* A rank gave up. The others have a moment to say what they see. */
static void on_fail(struct coordinator *c, const struct frame *frame)
{
	char words[WORDS_MAX];

	if (c->state == COORDINATOR_ENDED)
		return;
	snprintf(words, sizeof(words), "rank %u (%s): %s", frame->from, host_of(c, frame->from),
		 (const char *)frame->body);
	report_error(c->report, -1, words);
	if (c->failure)
		return;
	c->failure = strdup(words);
	c->abort_ns = now_ns() + GRACE_NS;
}

static void welcome_all(struct coordinator *c)
{
	char text[OPTIONS_RANKS_MAX * 270 + OPTIONS_SHARED_MAX];
	size_t used = 0;

	for (int rank = 0; rank < c->options->world; rank++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "host=%.256s\n",
					 c->hosts[rank]);
	used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", c->options->shared);
	c->state = COORDINATOR_LOAD;
	hub_broadcast(c->hub, FRAME_WELCOME, text, used);
}

/* It came when all was over; rank 0's own connection may do that, too. */
static void turn_away(struct coordinator *c, int rank)
{
	struct frame *frame = frame_new_text(FRAME_ABORT, FRAME_COORDINATOR, (uint16_t)rank, 0,
					     c->failure ? c->failure : "the run is over");

	hub_send(c->hub, rank, frame);
	free(frame);
}

static void on_joined(void *arg, int rank, const char *host)
{
	struct coordinator *c = arg;

	c->hosts[rank] = strdup(host);
	if (c->state == COORDINATOR_ENDED)
		turn_away(c, rank);
	if (c->state != COORDINATOR_GATHER)
		return;
	for (int i = 0; i < c->options->world; i++)
		if (!c->hosts[i])
			return;
	welcome_all(c);
	report_pairs(c);
}

/* Gives the token to the pairs [next_pair, next_pair + count). */
static void start_pairs(struct coordinator *c, size_t count)
{
	uint8_t *body = calloc(count, 8);

	if (!body) {
		coordinator_abort(c, "rank 0 is out of memory");
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct pair_name *pair = &c->pairs[c->next_pair + i];

		frame_put_u32(body + 8 * i, (uint32_t)(c->next_pair + i));
		frame_put_u32(body + 8 * i + 4, (uint32_t)pair->from << 16 | pair->to);
	}
	c->next_pair += count;
	hub_broadcast(c->hub, FRAME_START, body, 8 * count);
	free(body);
}

static void advance(struct coordinator *c)
{
	if (c->num_done < c->next_pair || c->failure)
		return;
	if (c->next_pair < c->num_pairs) {
		start_pairs(c, c->options->all_at_once ? c->num_pairs : 1);
		return;
	}
	c->state = COORDINATOR_FINISH;
	c->num_reported = 0;
	hub_broadcast(c->hub, FRAME_FINISH, NULL, 0);
}

static void on_loaded(struct coordinator *c, const struct frame *frame)
{
	if (c->options->verbose)
		fprintf(stderr, "rank %u (%s): %s\n", frame->from, c->hosts[frame->from],
			(const char *)frame->body);
	if (c->state != COORDINATOR_LOAD || ++c->num_reported < c->options->world)
		return;
	c->state = COORDINATOR_RUN;
	advance(c);
}

static void on_result(struct coordinator *c, const struct frame *frame)
{
	if (c->state != COORDINATOR_RUN || frame->pair >= c->next_pair ||
	    c->sides[frame->pair] == 2)
		return;
	if (report_merge(c->report, frame->pair, (const char *)frame->body))
		c->finished[frame->pair]++;
	if (++c->sides[frame->pair] < 2)
		return;
	if (c->finished[frame->pair] == 2)
		report_pair_ok(c->report, frame->pair);
	c->num_done++;
	advance(c);
}

static void on_bye(struct coordinator *c, const struct frame *frame)
{
	char words[WORDS_MAX];

	if (frame->size) {
		snprintf(words, sizeof(words), "rank %u (%s): %s", frame->from,
			 c->hosts[frame->from], (const char *)frame->body);
		report_error(c->report, -1, words);
	}
	if (c->state != COORDINATOR_FINISH || ++c->num_reported < c->options->world)
		return;
	c->state = COORDINATOR_ENDED;
	if (report_settle(c->report))
		hub_broadcast(c->hub, FRAME_EXIT, "\1", 1);
	else
		end_all(c, report_reason(c->report));
}

static void on_frame(void *arg, const struct frame *frame)
{
	struct coordinator *c = arg;

	switch (frame->type) {
	case FRAME_LOADED:
		on_loaded(c, frame);
		break;
	case FRAME_RESULT:
		on_result(c, frame);
		break;
	case FRAME_BYE:
		on_bye(c, frame);
		break;
	case FRAME_FAIL:
		on_fail(c, frame);
		break;
	default:
		break;
	}
}

static void on_lost(void *arg, int rank, const char *why)
{
	struct coordinator *c = arg;
	char words[WORDS_MAX];

	if (rank < 0)
		snprintf(words, sizeof(words), "%s", why);
	else
		snprintf(words, sizeof(words), "rank %d (%s) is gone: %s", rank, host_of(c, rank),
			 why);
	coordinator_abort(c, words);
}

struct hub_events coordinator_events(struct coordinator *coordinator)
{
	struct hub_events events = {
		.arg = coordinator,
		.joined = on_joined,
		.frame = on_frame,
		.lost = on_lost,
	};

	return events;
}

static void tick_gather(struct coordinator *c)
{
	char words[WORDS_MAX];
	int used;

	if (c->state != COORDINATOR_GATHER || now_ns() < c->gather_deadline_ns)
		return;
	used = snprintf(words, sizeof(words),
			"these ranks did not connect within %u s:", c->options->rendezvous_s);
	for (int rank = 0; rank < c->options->world; rank++)
		if (!c->hosts[rank])
			used += snprintf(words + used, sizeof(words) - (size_t)used, " %d", rank);
	snprintf(words + used, sizeof(words) - (size_t)used,
		 ". Are they running, and can they reach %s port %s?", c->options->master_addr,
		 c->options->master_port);
	coordinator_abort(c, words);
}

void coordinator_tick(struct coordinator *c)
{
	if (c->abort_ns && c->state != COORDINATOR_ENDED && now_ns() >= c->abort_ns)
		end_all(c, c->failure ? c->failure : "a rank failed");
	else
		tick_gather(c);
}
