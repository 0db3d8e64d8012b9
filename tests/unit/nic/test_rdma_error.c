/* SPDX-License-Identifier: Apache-2.0 */
/* test_rdma_error.c - the messages about errors of an RDMA device. */
#include "nic/rdma_port.h"

#include "unit.h"

/* Where the headers of verbs are installed. */
#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>

_Static_assert((int)MESH_RDMA_LOCAL_PROTECTION == (int)IBV_WC_LOC_PROT_ERR, "ABI of verbs");
_Static_assert((int)MESH_RDMA_FLUSHED == (int)IBV_WC_WR_FLUSH_ERR, "ABI of verbs");
_Static_assert((int)MESH_RDMA_REMOTE_REQUEST == (int)IBV_WC_REM_INV_REQ_ERR, "ABI of verbs");
_Static_assert((int)MESH_RDMA_REMOTE_ACCESS == (int)IBV_WC_REM_ACCESS_ERR, "ABI of verbs");
_Static_assert((int)MESH_RDMA_REMOTE_OPERATION == (int)IBV_WC_REM_OP_ERR, "ABI of verbs");
_Static_assert((int)MESH_RDMA_RETRIES_EXCEEDED == (int)IBV_WC_RETRY_EXC_ERR, "ABI of verbs");
_Static_assert((int)MESH_RDMA_RECEIVER_NOT_READY == (int)IBV_WC_RNR_RETRY_EXC_ERR, "ABI of verbs");
#endif

#define PEER_REASON 256

static const enum mesh_link_layer roce = MESH_LINK_LAYER_ETHERNET;

static void says(int status, enum mesh_link_layer layer, const char *part)
{
	char text[MESH_RDMA_ERROR_MAX];

	memset(text, 'x', sizeof(text));
	assert_ptr_equal(mesh_rdma_status_explain(status, layer, text), text);
	assert_true(strlen(text) < sizeof(text) - 1);
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static void says_not(int status, enum mesh_link_layer layer, const char *part)
{
	char text[MESH_RDMA_ERROR_MAX];

	mesh_rdma_status_explain(status, layer, text);
	if (strstr(text, part))
		fail_msg("\"%s\" says \"%s\"", text, part);
}

/* Each status has its cause in the field's terms, and a remedy. */
TEST(causes)
{
	says(MESH_RDMA_RETRIES_EXCEEDED, roce, "transport retry counter exceeded");
	says(MESH_RDMA_RECEIVER_NOT_READY, roce, "RNR retry counter exceeded");
	says(MESH_RDMA_RECEIVER_NOT_READY, roce, "is it stopped");
	says(MESH_RDMA_REMOTE_ACCESS, roce, "remote access error");
	says(MESH_RDMA_REMOTE_ACCESS, roce, "its log gives the cause");
	says(MESH_RDMA_LOCAL_PROTECTION, roce, "local protection error");
	says(MESH_RDMA_LOCAL_PROTECTION, roce, "freed or unregistered");
	says(MESH_RDMA_REMOTE_REQUEST, roce, "roce_ena=1");
	says(MESH_RDMA_REMOTE_OPERATION, roce, "dmesg");
	says(MESH_RDMA_FLUSHED, roce, "first error");
}

/* No answer: what to look at depends on the link. */
TEST(no_answer)
{
	const enum mesh_link_layer infiniband = MESH_LINK_LAYER_INFINIBAND;

	says(MESH_RDMA_RETRIES_EXCEEDED, roce, "check the cable, the MTU on both ends");
	says(MESH_RDMA_RETRIES_EXCEEDED, roce, "firewalls on UDP port 4791");
	says(MESH_RDMA_RETRIES_EXCEEDED, infiniband, "subnet manager");
	says_not(MESH_RDMA_RETRIES_EXCEEDED, infiniband, "UDP");
}

TEST(silence)
{
	char text[MESH_RDMA_ERROR_MAX];

	mesh_rdma_silence_explain(roce, text);
	assert_non_null(strstr(text, "TCP reaches the peer on this link and RDMA does not"));
	assert_non_null(strstr(text, "UDP port 4791"));
	assert_null(strstr(text, "cable"));	 /* TCP passes */
	assert_true(strlen(text) < PEER_REASON); /* room in a peer's reason */
}

/* Providers are not trusted to know only these. */
TEST(unknown)
{
	says(19, roce, "status 19");
	says(-1, roce, "status -1");
	says(12345, roce, "status 12345");
	assert_int_equal(mesh_rdma_status_errno(12345), -EIO);
	assert_int_equal(mesh_rdma_status_errno(0), -EIO);
}

TEST(errno)
{
	assert_int_equal(mesh_rdma_status_errno(MESH_RDMA_RETRIES_EXCEEDED), -ETIMEDOUT);
	assert_int_equal(mesh_rdma_status_errno(MESH_RDMA_FLUSHED), -ECONNRESET);
	assert_int_equal(mesh_rdma_status_errno(MESH_RDMA_REMOTE_ACCESS), -EREMOTEIO);
	assert_int_equal(mesh_rdma_status_errno(MESH_RDMA_LOCAL_PROTECTION), -EFAULT);
}
