/* SPDX-License-Identifier: Apache-2.0 */
/* test_hello.c - the messages about a HELLO that is refused. */
#include <stdatomic.h>

#include "setup/setup.h"
#include "control/peer.h"

#include "log_capture.h"
#include "transport_pair.h"

static _Atomic(int) open_error; /* of the next remote; negative errno */

int __real_mesh_remote_open(struct mesh_domain *domain, const void *name, size_t name_len,
			    struct mesh_remote **remote);

int __wrap_mesh_remote_open(struct mesh_domain *domain, const void *name, size_t name_len,
			    struct mesh_remote **remote)
{
	int error = atomic_exchange(&open_error, 0);

	return error ? error : __real_mesh_remote_open(domain, name, name_len, remote);
}

/* The first attempt fails, and the log has @why; the next one succeeds. */
static void hello_fails(int error, const char *why)
{
	struct pair pair;

	log_capture_start();
	atomic_store(&open_error, error);
	pair_open(&pair);
	assert_true(log_captured(MESH_LOG_INFO, why));
	message_move(&pair, 64, 64, false);
	pair_close(&pair);
}

TEST(bad_name)
{
	hello_fails(-EPROTO, "endpoint name does not match");
}

TEST(no_room)
{
	hello_fails(-ENOMEM, "libfabric cannot add its address");
	hello_fails(-EINVAL, "libfabric cannot add its address");
}

void tests_begin(void)
{
	setenv("NCCL_MESH_NICS", "=lo", 1);
}
