/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.h - communicators that are split, doubled, made again and again, or lose a rank. */
#ifndef COLLECTIVES_LIFECYCLE_H
#define COLLECTIVES_LIFECYCLE_H

#include "job.h"

/*
 * Each is collective, reports errors on stderr, and returns 0 or a negative errno;
 * -EOPNOTSUPP if the library does not have what it needs.
 */

/** Even and odd ranks apart, each half with sums of its own. */
int lifecycle_split(struct job *job);

/** job->repeats communicators, one after another, in one process. */
int lifecycle_repeat(struct job *job);

/** Two communicators whose operations are under way at once. */
int lifecycle_two(struct job *job);

/** Buffers of ncclMemAlloc, registered with ncclCommRegister. */
int lifecycle_registered(struct job *job);

/**
 * An all-reduce of 4 bytes as the first operation of a communicator, for which NCCL connects the
 * algorithm that it chooses. Without kernels it is started only.
 */
int lifecycle_first(struct job *job);

/**
 * One rank kills itself while the others are in an operation; they want an asynchronous error
 * within job->bound_s, and ncclCommAbort within that again. The last test of a process.
 */
int lifecycle_death(struct job *job);

#endif
