/* SPDX-License-Identifier: Apache-2.0 */
/* phase.c - phases on the wire, in a comm's buffer, and in words. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "pattern.h"
#include "phase.h"

/* NCCL's default buffers (init.cc): LL 512 KiB, LL128 4,915,200 bytes. */
#define LL_BYTES ((size_t)512 << 10)
#define LL128_BYTES ((size_t)4915200)
/* Larger messages of that protocol would not fit 32 slots. */
#define LL_MESSAGE_MAX ((uint64_t)8 << 10)
#define LL128_MESSAGE_MAX ((uint64_t)128 << 10)
/* NCCL's slots in a buffer (NCCL_STEPS in device.h). */
#define STEPS 8
/* A slot starts where a line of LL128 does. */
#define SLOT_ALIGN 128
/* Beside the message: an offset, and the guard behind it. */
#define SLOT_SLACK 4096
#define COUNT_MAX 100000000u

void phase_encode(const struct phase *phase, uint8_t *wire)
{
	const uint64_t words[PHASE_WIRE / 8] = {
		phase->number, phase->kind,  phase->protocol, phase->order,
		phase->full,   phase->exact, phase->mixed,    phase->window,
		phase->offset, phase->size,  phase->count,
	};

	for (size_t i = 0; i < PHASE_WIRE / 8; i++)
		frame_put_u64(wire + 8 * i, words[i]);
}

int phase_decode(const uint8_t *wire, size_t size, struct phase *phase)
{
	uint64_t words[PHASE_WIRE / 8];

	if (size != PHASE_WIRE)
		return -EPROTO;
	for (size_t i = 0; i < PHASE_WIRE / 8; i++)
		words[i] = frame_get_u64(wire + 8 * i);
	if (words[1] >= PHASE_KINDS || words[2] >= PHASE_PROTOCOLS || words[3] >= PHASE_ORDERS ||
	    words[4] > 1 || words[5] > 1 || words[6] > 1 || words[7] < 1 ||
	    words[7] > OPTIONS_INFLIGHT_MAX || words[8] > SLOT_SLACK / 2 ||
	    words[9] > (uint64_t)1 << 30 || words[10] > COUNT_MAX)
		return -EPROTO;
	phase->number = words[0];
	phase->kind = (enum phase_kind)words[1];
	phase->protocol = (enum phase_protocol)words[2];
	phase->order = (enum phase_order)words[3];
	phase->full = words[4];
	phase->exact = words[5];
	phase->mixed = words[6];
	phase->window = (uint32_t)words[7];
	phase->offset = (uint32_t)words[8];
	phase->size = words[9];
	phase->count = words[10];
	return 0;
}

struct plan phase_plan(const struct phase *phase, uint32_t channel, bool reply)
{
	struct plan plan = {
		.count = phase->count,
		.size = phase->size,
		.window = phase->window,
		.offset = phase->offset,
		.protocol = phase->protocol,
		.full = phase->full,
		.exact = phase->exact,
		.mixed = phase->mixed,
	};

	if (phase->kind == PHASE_PINGPONG && channel)
		plan.count = 0;
	if (phase->kind == PHASE_STREAM && reply) {
		plan.count = channel ? 0 : 1;
		plan.size = 8;
		plan.protocol = PHASE_LL;
	}
	return plan;
}

uint64_t plan_message_size(const struct plan *plan, uint64_t index)
{
	/* Both ends compute this: around multiples of 128 in no simple order, and zero at times. */
	static const uint64_t odd[] = {0, 1, 127, 128, 129, 7, 0, 4096, 65535, 8, 4095, 131072};
	uint64_t size;

	if (!plan->mixed)
		return plan->size;
	size = odd[index % (sizeof(odd) / sizeof(odd[0]))];
	if (index % 5 == 4)
		size = plan->size > 2 ? plan->size - index % 3 : plan->size;
	return size < plan->size ? size : plan->size;
}

enum phase_protocol phase_protocol_for(uint64_t size)
{
	if (size <= LL_MESSAGE_MAX)
		return PHASE_LL;
	return size <= LL128_MESSAGE_MAX ? PHASE_LL128 : PHASE_SIMPLE;
}

static size_t at_least(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Room for so many slots of so many bytes, in whole pages. */
static size_t slots_bytes(size_t slots, uint64_t message)
{
	return slots * (((size_t)message + 4095) / 4096 * 4096 + SLOT_SLACK);
}

size_t phase_region_bytes(enum phase_protocol protocol, const struct options *options)
{
	size_t bytes = slots_bytes(OPTIONS_INFLIGHT_MAX, 8192);

	if (protocol == PHASE_LL)
		return LL_BYTES;
	if (protocol == PHASE_LL128)
		return LL128_BYTES;
	bytes = at_least(bytes, slots_bytes(options->inflight, options_max_size(options)));
	if (options->check)
		bytes = at_least(bytes, slots_bytes(STEPS, options->check_max));
	return bytes;
}

size_t phase_slot_bytes(size_t region_bytes, uint32_t window)
{
	return region_bytes / window / SLOT_ALIGN * SLOT_ALIGN;
}

static bool fits(const struct phase *phase, const struct options *options)
{
	size_t region = phase_region_bytes(phase->protocol, options);

	return phase->offset + phase->size + PATTERN_GUARD <=
	       phase_slot_bytes(region, phase->window);
}

void phase_fit(struct phase *phase, const struct options *options)
{
	while (phase->window > 1 && !fits(phase, options))
		phase->window--;
}

void phase_describe(const struct phase *phase, char *text, size_t size)
{
	static const char *const kinds[] = {"check", "ping-pong", "stream"};
	static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};
	static const char *const orders[] = {"", ", receives posted first", ", sends tried first"};

	snprintf(text, size,
		 "%s of %llu messages of %s%llu bytes (%s buffer offset %u, %u in "
		 "flight%s%s)",
		 kinds[phase->kind], (unsigned long long)phase->count, phase->mixed ? "0 to " : "",
		 (unsigned long long)phase->size, protocols[phase->protocol], phase->offset,
		 phase->window, orders[phase->order],
		 phase->exact ? ", receives of the exact size" : "");
}
