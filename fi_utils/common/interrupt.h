/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.h - Ctrl-C for subcommands that must clean up before they end. */
#ifndef MESH_FI_UTILS_COMMON_INTERRUPT_H
#define MESH_FI_UTILS_COMMON_INTERRUPT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * From now on the first SIGINT, SIGTERM or SIGHUP only ends the waits below and makes
 * interrupt_happened() true; calls that block return EINTR. The second one ends the process.
 * Without a free file descriptor nothing changes: signals end the process.
 */
void interrupt_catch(void);

/** True after a signal. */
bool interrupt_happened(void);

/**
 * Waits until poll(2) reports something for one of the descriptors, until @deadline_ms, or until
 * Ctrl-C (after interrupt_catch()).
 *
 * @fds: @num of them, and room for one more, which is overwritten; those below 0 are ignored
 * @deadline_ms: of mesh_clock_ms()
 *
 * Returns 0; -ETIMEDOUT at @deadline_ms, even if a descriptor is ready, so that a loop around this
 * ends; -EINTR after Ctrl-C.
 */
int interrupt_poll(struct pollfd *fds, int num, uint64_t deadline_ms);

/** interrupt_poll() of one descriptor; -1: waits for the time and Ctrl-C only. */
int interrupt_wait(int fd, short events, uint64_t deadline_ms);

#endif
