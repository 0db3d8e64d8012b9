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

/**
 * Starts to open the domain of one more NIC, while others may be in use, and listens on its
 * address. Connections use it when it is open. process->lock held.
 *
 * @dev: below num_devs; its domain is not open and not being opened
 *
 * Returns 0; -EADDRINUSE if another process has the control port on that address; another negative
 * errno of the kernel.
 */
MESH_HOLDS(process)
int mesh_opening_join(struct mesh_process *process, int dev);

/**
 * Whether connections can be made: 0; -EAGAIN while domains are being opened, for a bounded time;
 * -ENODEV if none could be opened, each with its reason in the log. process->lock held.
 */
MESH_HOLDS(process)
int mesh_openings_result(struct mesh_process *process, uint64_t now_ms);

#endif
