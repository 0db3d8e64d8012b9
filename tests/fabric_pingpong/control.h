/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - the main thread of each rank: carries frames between rank 0 and the worker, watches
 * the worker, and on rank 0 runs the hub. It never calls the plugin, so it never hangs with it.
 */
#ifndef PINGPONG_CONTROL_H
#define PINGPONG_CONTROL_H

#include "options.h"

/**
 * Runs this rank from the rendezvous to the report.
 *
 * Returns the exit status: 0 if all ranks found everything right.
 */
int control_run(struct options *options);

#endif
