/* SPDX-License-Identifier: Apache-2.0 */
/* test_foreign_words.c - what other ranks say reaches the terminal as printable ASCII only. */

/* The program is not linked here. */
#include "tests/fabric_pingpong/frame.c"  /* NOLINT(bugprone-suspicious-include) */
#include "tests/fabric_pingpong/report.c" /* NOLINT(bugprone-suspicious-include) */

#include "unit.h"

#define UNCLEAN "a\x1b[2J\n\xc2\x9b\x7f"
#define CLEAN "a?[2J????"

static struct link link_near, link_far;

static void pair_make(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	link_open(&link_near, fds[0]);
	link_open(&link_far, fds[1]);
}

static void pair_free(void)
{
	link_close(&link_near);
	link_close(&link_far);
}

/* Takes the frame and releases it; returns the one that has arrived at the other end. */
static struct frame *carried(struct frame *frame)
{
	struct frame *arrived = NULL;

	link_send(&link_near, frame);
	free(frame);
	assert_int_equal(link_flush(&link_near), 0);
	assert_int_equal(link_fill(&link_far), 0);
	assert_int_equal(link_next(&link_far, &arrived), 0);
	assert_non_null(arrived);
	return arrived;
}

TEST_WITH(frames, pair_make, pair_free)
{
	static const enum frame_type types[] = {FRAME_LOADED, FRAME_BYE, FRAME_FAIL, FRAME_ABORT,
						FRAME_PAIR_FAIL};
	struct frame *frame;

	FOR_EACH(i, types) {
		frame = carried(frame_new_text(types[i], 0, 1, 0, UNCLEAN));
		assert_string_equal((char *)frame->body, CLEAN);
		free(frame);
	}
	frame = carried(
		frame_new(FRAME_HELLO, 1, 0, 0, "\x80\0\0\1\0\0\0\2" UNCLEAN, 8 + strlen(UNCLEAN)));
	assert_memory_equal(frame->body, "\x80\0\0\1\0\0\0\2", 8);
	assert_string_equal((char *)frame->body + 8, CLEAN);
	free(frame);
	/* Numbers and handles are as they were sent. */
	frame = carried(frame_new(FRAME_READY, 0, 1, 0, "\x1b\x80\0\xff\x1b\x80\0\xff", 8));
	assert_memory_equal(frame->body, "\x1b\x80\0\xff\x1b\x80\0\xff", 8);
	free(frame);
}

TEST(result)
{
	json_t *report = report_new(), *pair;

	report_add_pair(report, (struct pair_name){0, 1}, "a", "b");
	assert_true(report_merge(report, 0,
				 "{\"finished\":true,\"paths\":[{\"nic\":\"a\\u001b[2J\"}],"
				 "\"errors\":[\"\\u009b\"]}"));
	pair = json_array_get(json_object_get(report, "pairs"), 0);
	assert_string_equal(text_of(json_array_get(json_object_get(pair, "paths"), 0), "nic", ""),
			    "a?[2J");
	assert_string_equal(json_string_value(json_array_get(json_object_get(pair, "errors"), 0)),
			    "??");
	json_decref(report);
}
