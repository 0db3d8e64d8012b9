/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulated_peers.h - many processes for one node to talk to: a thread that answers frames and
 * greetings for all of them, through one libfabric endpoint, over the loopback interface. They hold
 * no data and never test anything. Set NCCL_MESH_NICS to "=lo" before.
 */
#ifndef MESH_TESTS_SIMULATED_PEERS_H
#define MESH_TESTS_SIMULATED_PEERS_H

#include "control/process.h"
#include "wire/handle.h"

#include "unit.h"

#define SIMULATED_PEERS_MAX 512
#define SIMULATED_COMMS_MAX 8 /* of each, in each direction */

/** Starts the thread; @num processes listen. @process: the node that is tested, started. */
void simulated_peers_start(struct mesh_process *process, int num);
void simulated_peers_stop(void);

/** The handle of this process's listener. */
void simulated_handle(int peer, uint8_t bytes[MESH_HANDLE_BYTES]);

/** The processes answer the ends of comms only once so many have ended; 0: each at once. */
void simulated_answers_hold(int num);

/** This process connects to our listener, and makes so many comms. */
void simulated_dial(int peer, const struct mesh_handle *handle, int num_comms);

#endif
