/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.h - Ctrl-C for subcommands that have something to put away before they end. */
#ifndef MESH_FI_UTILS_INTERRUPT_H
#define MESH_FI_UTILS_INTERRUPT_H

#include <stdbool.h>

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

#endif
