/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_retry.h - when a path that has lost its circuit may look for another one, while its comm
 * goes on over other paths: docs/protocol/relaying.md. Pure; the owner of the path locks it.
 */
#ifndef MESH_TRANSPORT_PATH_RETRY_H
#define MESH_TRANSPORT_PATH_RETRY_H

#include <stdint.h>

/* Bounds of the pause between two looks. */
#define MESH_RETRY_MIN_MS 1000
#define MESH_RETRY_MAX_MS 30000
/* A circuit that has held for so long was none that breaks soon. */
#define MESH_RETRY_STEADY_MS 30000

/* Zero at first: then the first look is due at once. */
struct mesh_path_retry {
	uint64_t up_ms;		/* when it got the circuit that it has, or has lost; 0: judged */
	uint64_t pause_ms;	/* the last pause between two looks; 0: there was none */
	uint64_t not_before_ms; /* when that is over */
};

/**
 * A look was in vain: the next one is due after a longer pause. All paths that have the same pause
 * are due at the same moments.
 */
void mesh_path_retry_later(struct mesh_path_retry *retry, uint64_t now_ms);

/** When the path, which has lost its circuit by now, may be looked for. */
uint64_t mesh_path_retry_due_ms(struct mesh_path_retry *retry, uint64_t now_ms);

#endif
