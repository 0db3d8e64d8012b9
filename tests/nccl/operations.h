/* SPDX-License-Identifier: Apache-2.0 */
/* operations.h - the collectives: how each is called, and what it has to leave where. */
#ifndef COLLECTIVES_OPERATIONS_H
#define COLLECTIVES_OPERATIONS_H

#include "bandwidth.h"
#include "job.h"
#include "values.h"

/* One call of an operation. Counts are in elements of 4 bytes. */
struct call {
	const struct operation *operation;
	enum values_kind kind;
	size_t count; /* of one rank's part, or of everything where nothing is divided */
	int root;     /* also the sender of a pair */
	int peer;     /* the receiver of a pair */
};

struct operation {
	const char *name;
	enum bandwidth_shape shape;
	bool divided; /* every rank has a part: the size is that of all parts */
	bool sums;
	bool rooted; /* has a root: it changes from size to size */
	bool pairs;  /* is run for each ordered pair of ranks */
	ncclResult_t (*start)(const struct job *job, const struct call *call, const void *send,
			      void *receive, ncclComm_t comm, void *stream);
	/*
	 * What elements *count from @at on of this rank's result come from, *count being what is
	 * left of the result at first. False: nothing is received here.
	 */
	bool (*origin)(const struct job *job, const struct call *call, size_t at,
		       struct values_origin *origin, size_t *count);
};

extern const struct operation operations[];
extern const size_t num_operations;

/** Elements that a rank sends and receives at most in this call. */
size_t operation_elements(const struct job *job, const struct call *call);

/** Bytes that count as the size of this call. */
uint64_t operation_bytes(const struct job *job, const struct call *call);

/** The call whose size is @bytes, or the next larger one that its ranks can divide. */
struct call operation_call(const struct job *job, const struct operation *operation, size_t bytes);

/**
 * Looks at this rank's whole result. Returns the number of wrong elements and says the first.
 */
size_t operation_wrong(const struct job *job, const struct call *call, const uint32_t *result);

#endif
