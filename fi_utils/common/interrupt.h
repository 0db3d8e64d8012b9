/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.h - Ctrl-C for subcommands that must clean up before they end. */
#ifndef MESH_FI_UTILS_COMMON_INTERRUPT_H
#define MESH_FI_UTILS_COMMON_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * From now on the first SIGINT, SIGTERM or SIGHUP only makes the returned descriptor readable
 * (never read it: it stays so) and interrupt_happened() true; calls that block return EINTR. The
 * second one ends the process, as ever.
 *
 * Returns a file descriptor for poll(), or -1 if there is none to be had: signals then end the
 * process as before.
 */
int interrupt_catch(void);

/** True once a signal came. */
bool interrupt_happened(void);

/**
 * Waits until poll(2) reports something for @fd, but no longer than @deadline_ms, and not beyond
 * Ctrl-C (after interrupt_catch()).
 *
 * @fd: -1: only the time and Ctrl-C are waited for
 * @deadline_ms: mesh_clock_ms()
 *
 * Returns 0; -ETIMEDOUT, also where @fd has news at that time: a loop around this ends, however
 * much comes; -EINTR after Ctrl-C.
 */
int interrupt_wait(int fd, short events, uint64_t deadline_ms);

#endif
