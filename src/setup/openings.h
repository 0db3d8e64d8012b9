/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openings.h - opens the NICs' domains, each in a thread of its own, without process->lock.
 *
 * A domain takes milliseconds on tcp and up to seconds on ofi_rxm. Neither listen nor connect waits
 * for it: a handle and a control listener need no domain, and connect is "not ready" meanwhile.
 * Connections to a control listener wait in the kernel's queue until the domain is open.
 */
#ifndef MESH_SETUP_OPENINGS_H
#define MESH_SETUP_OPENINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/process.h"

/**
 * Starts to open each domain that is not open yet. No connection exists yet. process->lock held.
 *
 * @cheap: only those that cost little memory: tcp, not ofi_rxm with its 70 to 134 MB
 */
MESH_HOLDS(process)
void mesh_openings_start(struct mesh_process *process, bool cheap);

/** Waits until no thread opens a domain. No lock held. Returns at once in a forked child. */
void mesh_openings_await(void);

/**
 * Whether connections can be made: 0; -EAGAIN while domains are being opened, for a bounded time;
 * -ENODEV if none could be opened, each with its reason in the log. process->lock held.
 */
MESH_HOLDS(process)
int mesh_openings_result(struct mesh_process *process, uint64_t now_ms);

#endif
