/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_limit.h - for messages that a stranger, or a full table, can cause as often as it likes: a
 * few lines in each period, and how many more there were.
 */
#ifndef MESH_BASE_LOG_LIMIT_H
#define MESH_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds. */
#define MESH_LOG_LIMIT_PERIOD_MS 10000
/* Room for what mesh_log_limit_pass() writes. */
#define MESH_LOG_LIMIT_TEXT_MAX 48

/* One for each kind of message; zeros at first. Lock: its owner's. */
struct mesh_log_limit {
	uint64_t since_ms;  /* when the period began; 0: there was no line yet */
	unsigned int lines; /* in this period */
	unsigned int held;  /* not written since the last line */
};

/**
 * Asks whether a line may be written.
 *
 * @lines: so many may be in one period
 * @now_ms: mesh_clock_ms()
 * @text: becomes what the line ends with, MESH_LOG_LIMIT_TEXT_MAX bytes: "", or how many lines were
 *        not written since the last one
 *
 * Returns true if so; otherwise the line has been counted.
 */
bool mesh_log_limit_pass(struct mesh_log_limit *limit, unsigned int lines, uint64_t now_ms,
			 char *text);

#endif
