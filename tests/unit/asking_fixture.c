/* SPDX-License-Identifier: Apache-2.0 */
/* asking_fixture.c - NICs and what they have heard, without a network. */
#include "asking_fixture.h"
#include "unit.h"

static void about_fill(struct mesh_neighbour *about, uint64_t node_id, const char *netdev,
		       const char *addr)
{
	struct mesh_addr address;

	memset(about, 0, sizeof(*about));
	about->node_id = node_id;
	snprintf(about->node, sizeof(about->node), "%s", node_id == ASKING_OWN_ID ? "a" : "b");
	snprintf(about->netdev, sizeof(about->netdev), "%s", netdev);
	snprintf(about->product, sizeof(about->product), "9.9");
	about->protocol = MESH_PROTOCOL_VERSION;
	about->providers = 1 << MESH_PROVIDER_TCP;
	about->mtu = 9000;
	about->speed_mbps = 100000;
	assert_int_equal(mesh_addr_parse(addr, &address), 0);
	assert_true(mesh_neighbour_addr_add(about, &address));
}

/* A NIC that has heard nothing. */
static void link_add(struct mesh_asking *asking, const char *netdev, const char *addr)
{
	int i = asking->num_links++;

	about_fill(&asking->links[i].about, ASKING_OWN_ID, netdev, addr);
	asking->asked[i].ifindex = asking->links[i].ifindex = (unsigned int)i + 1;
}

void asking_fixture_open(struct mesh_asking *asking, struct mesh_neighbour_self *self)
{
	memset(self, 0, sizeof(*self));
	self->node_id = ASKING_OWN_ID;
	snprintf(self->node, sizeof(self->node), "a");
	mesh_asking_init(asking, self);
	link_add(asking, "ab0", "10.1.0.1/24");
	link_add(asking, "ab1", "10.2.0.1/24");
}

struct mesh_heard *asking_heard_add(struct mesh_asking *asking, int index, uint64_t node_id,
				    const char *netdev, const char *addr)
{
	struct mesh_heard *heard = calloc(1, sizeof(*heard));

	assert_non_null(heard);
	about_fill(&heard->about, node_id, netdev, addr);
	asking->asked[index].heard[asking->asked[index].num_heard++] = heard;
	return heard;
}

void asking_ports_set(struct mesh_asking *asking, uint64_t first, uint64_t second)
{
	asking->links[0].about.token = first;
	asking->links[1].about.token = second;
}
