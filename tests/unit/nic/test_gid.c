/* SPDX-License-Identifier: Apache-2.0 */
/* test_gid.c - the GID that stands for an address; what a PCIe link carries. */
#include "common/pci_link.h"
#include "nic/rdma_port.h"

#include "unit.h"

#define MAPPED(last)                                                                               \
	{                                                                                          \
		[10] = 0xff, 0xff, 10, 1, 0, (last)                                                \
	}

static const struct mesh_rdma_port roce = {
	.device = "mlx5_0",
	.link_layer = MESH_LINK_LAYER_ETHERNET,
	.gids = {{.bytes = {0xfe, 0x80}, .index = 0, .type = MESH_GID_ROCE_V2},
		 {.bytes = MAPPED(1), .index = 2, .type = MESH_GID_ROCE_V1},
		 {.bytes = MAPPED(1), .index = 3, .type = MESH_GID_ROCE_V2},
		 {.bytes = MAPPED(2), .index = 5, .type = MESH_GID_ROCE_V1}},
	.num_gids = 4,
};

static const struct mesh_gid *find(const struct mesh_rdma_port *rdma, const char *text)
{
	struct mesh_addr addr;

	assert_int_equal(mesh_addr_parse(text, &addr), 0);
	return mesh_gid_find(rdma, &addr);
}

TEST(roce)
{
	assert_int_equal(find(&roce, "10.1.0.1/24")->index, 3);
	assert_int_equal(find(&roce, "10.1.0.2/24")->index, 5); /* v1 is better than nothing */
	assert_null(find(&roce, "10.1.0.3/24"));
	assert_int_equal(find(&roce, "fe80::/64")->index, 0);
	assert_null(find(&roce, "0.0.0.0/0")); /* fe80:: ends so, and is another address */
}

TEST(infiniband)
{
	struct mesh_rdma_port port = {
		.link_layer = MESH_LINK_LAYER_INFINIBAND,
		.gids = {{.bytes = {0xfe, 0x80, 1}, .index = 0, .type = MESH_GID_IB}},
		.num_gids = 1,
	};

	assert_int_equal(find(&port, "10.1.0.1/24")->type, MESH_GID_IB);
	port.num_gids = 0;
	assert_null(find(&port, "10.1.0.1/24"));
}

TEST(pci_link)
{
	const struct mesh_pci_link connectx3 = {4, 8000, 8, 8000, 4, 16000};
	const struct mesh_pci_link slow = {8, 2500, 8, 8000, 16, 16000};
	const struct mesh_pci_link full = {4, 32000, 4, 32000, 4, 32000};
	const struct mesh_pci_link none = {0};
	char text[MESH_PCI_LINK_TEXT_MAX];

	assert_true(mesh_pci_link_is_reduced(&connectx3));
	assert_true(mesh_pci_link_is_reduced(&slow));
	assert_false(mesh_pci_link_is_reduced(&full));
	assert_false(mesh_pci_link_is_reduced(&none));
	assert_int_equal(mesh_pci_link_mbps(4, 8000), 31507);
	assert_int_equal(mesh_pci_link_mbps(4, 5000), 16000);
	assert_int_equal(mesh_pci_link_mbps(0, 8000), 0);
	assert_string_equal(mesh_pci_link_text(4, 2500, text), "x4 at 2.5 GT/s");
	assert_string_equal(mesh_pci_link_text(4, 0, text), "");
}
