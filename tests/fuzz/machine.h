/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - the machine of fuzz targets that run whole parts of the plugin: the input decides
 * what happens, time passes when it says so, and nothing outside of the process is reached.
 *
 * A target that uses it has the ldflags of fuzz_comm.
 */
#ifndef MESH_TESTS_FUZZ_MACHINE_H
#define MESH_TESTS_FUZZ_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_fabric.h"
#include "wire/message.h"

/*
 * Bytes of payload in a message: room for all grants. Less than the plugin's, because each input
 * opens domains, whose buffers ASan poisons. No message that is sent has LL128's flags, whose
 * copies need MESH_UNFLAGGED_BYTES.
 */
#define MACHINE_PAYLOAD (MESH_GRANTS_PER_MESSAGE * sizeof(struct mesh_grant))

/* All of it belongs to the input that runs. */
struct fuzz_machine {
	const uint8_t *at;
	size_t left;
	uint64_t now_ns, step_ns, looks;
	uint32_t random;
	bool closing; /* time passes fast */
	bool said;    /* something was sent over a control connection, and is not read */
};
extern struct fuzz_machine machine;

/** Begins with this input, and with a clock that was never looked at. */
void machine_begin(const uint8_t *data, size_t size);

/** Time passes fast, until @fast is false: what waits meanwhile must end, or the target does. */
void machine_hurry(bool fast);

/** The next @bytes of the input, at most 4, as a number; zeros behind the end. */
uint32_t take(size_t bytes);
/** Reads @bytes; what is behind the end stays as it is. */
void take_bytes(void *to, size_t bytes);

/** One operation in flight ends, or all of a kind. */
void post_end(struct fake_post *post, bool fails);
void posts_end(struct fake_posts *posts, bool fails);
/** Forgets those that have ended, and were read: the fake has room for so many only. */
void posts_forget(struct fake_posts *posts, int *seen);

#endif
