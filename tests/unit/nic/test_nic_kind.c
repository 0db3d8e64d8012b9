/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_kind.c - cables, bridges, tunnels and containers' interfaces are distinguished. */
#include <net/if_arp.h>

#include "nic/nic.h"

#include "unit.h"

static struct mesh_nic make(const char *netdev, const char *link_kind, unsigned short link_type)
{
	struct mesh_nic nic = {.ifindex = 10, .link_type = link_type};

	snprintf(nic.netdev, sizeof(nic.netdev), "%s", netdev);
	snprintf(nic.link_kind, sizeof(nic.link_kind), "%s", link_kind);
	return nic;
}

TEST(single)
{
	static const struct {
		const char *netdev, *link_kind;
		unsigned short link_type;
		enum mesh_nic_kind kind;
		const char *words;
	} cases[] = {
		{"lo", "", ARPHRD_LOOPBACK, MESH_NIC_LOOPBACK, "loopback"},
		{"enp1s0f0np0", "", ARPHRD_ETHER, MESH_NIC_PHYSICAL, "physical"},
		{"thunderbolt0", "", ARPHRD_ETHER, MESH_NIC_PHYSICAL, "physical"},
		{"ib0", "", ARPHRD_INFINIBAND, MESH_NIC_INFINIBAND, "InfiniBand"},
		{"ib0.8001", "ipoib", ARPHRD_INFINIBAND, MESH_NIC_INFINIBAND, "InfiniBand (ipoib)"},
		{"docker0", "bridge", ARPHRD_ETHER, MESH_NIC_BRIDGE, "bridge"},
		{"ovs0", "openvswitch", ARPHRD_ETHER, MESH_NIC_BRIDGE, "bridge (openvswitch)"},
		{"bond0", "bond", ARPHRD_ETHER, MESH_NIC_VIRTUAL, "virtual (bond)"},
		{"eth0.7", "vlan", ARPHRD_ETHER, MESH_NIC_VIRTUAL, "virtual (vlan)"},
		{"net1", "macvlan", ARPHRD_ETHER, MESH_NIC_VIRTUAL, "virtual (macvlan)"},
		{"eth0", "veth", ARPHRD_ETHER, MESH_NIC_VIRTUAL, "virtual (veth)"},
		{"eth0", "netkit", ARPHRD_ETHER, MESH_NIC_VIRTUAL, "virtual (netkit)"},
		{"new0", "tomorrow", ARPHRD_ETHER, MESH_NIC_VIRTUAL, "virtual (tomorrow)"},
		{"veth0", "veth", ARPHRD_ETHER, MESH_NIC_VIRTUAL, "virtual (veth)"},
		{"veth12345", "veth", ARPHRD_ETHER, MESH_NIC_VIRTUAL, "virtual (veth)"},
		{"veth1a2b3c4", "veth", ARPHRD_ETHER, MESH_NIC_CONTAINER,
		 "host end of a container's network (veth)"},
		{"cali0123456789a", "veth", ARPHRD_ETHER, MESH_NIC_CONTAINER,
		 "host end of a container's network (veth)"},
		{"lxc_health", "veth", ARPHRD_ETHER, MESH_NIC_CONTAINER,
		 "host end of a container's network (veth)"},
		{"lxc_health", "netkit", ARPHRD_ETHER, MESH_NIC_CONTAINER,
		 "host end of a container's network (netkit)"},
		{"flannel.1", "vxlan", ARPHRD_ETHER, MESH_NIC_CONTAINER, "no cable (vxlan)"},
		{"wg0", "wireguard", ARPHRD_NONE, MESH_NIC_CONTAINER, "no cable (wireguard)"},
		{"tap0", "tun", ARPHRD_ETHER, MESH_NIC_CONTAINER, "no cable (tun)"},
		{"sit0", "sit", ARPHRD_SIT, MESH_NIC_CONTAINER, "no cable (sit)"},
		{"kube-ipvs0", "dummy", ARPHRD_ETHER, MESH_NIC_CONTAINER, "no cable (dummy)"},
		{"can0", "", 280, MESH_NIC_CONTAINER, "neither Ethernet nor InfiniBand"},
		/* A name alone makes no container of a card. */
		{"eni1", "", ARPHRD_ETHER, MESH_NIC_PHYSICAL, "physical"},
	};
	struct mesh_nic nic;
	char words[64];

	FOR_EACH(i, cases) {
		nic = make(cases[i].netdev, cases[i].link_kind, cases[i].link_type);
		mesh_nic_classify(&nic, 1);
		if (nic.kind != cases[i].kind)
			fail_msg("%s (%s) is taken for kind %d", nic.netdev, nic.link_kind,
				 nic.kind);
		assert_string_equal(mesh_nic_kind_text(&nic, words, sizeof(words)), cases[i].words);
	}
}

TEST(masters)
{
	struct mesh_nic nics[4];

	nics[0] = make("eth0", "veth", ARPHRD_ETHER);
	nics[1] = make("br0", "bridge", ARPHRD_ETHER);
	nics[2] = make("vrf0", "vrf", ARPHRD_ETHER);
	nics[3] = make("enp1s0", "", ARPHRD_ETHER);
	nics[1].ifindex = 11;
	nics[2].ifindex = 12;
	nics[0].master = 11;
	nics[3].master = 11;
	mesh_nic_classify(nics, 4);
	assert_int_equal(nics[0].kind, MESH_NIC_CONTAINER);
	assert_int_equal(nics[3].kind, MESH_NIC_PHYSICAL); /* a card in a bridge is still a card */
	assert_ptr_equal(mesh_nic_find(nics, 4, 12), &nics[2]);
	assert_null(mesh_nic_find(nics, 4, 99));
	nics[0].master = 12; /* a VRF is no bridge */
	mesh_nic_classify(nics, 4);
	assert_int_equal(nics[0].kind, MESH_NIC_VIRTUAL);
	nics[0].master = 99; /* in a namespace that we do not see */
	mesh_nic_classify(nics, 4);
	assert_int_equal(nics[0].kind, MESH_NIC_VIRTUAL);
}

TEST(wireless)
{
	struct mesh_nic nic = make("wlan0", "", ARPHRD_ETHER);

	nic.kind = MESH_NIC_WIRELESS;
	mesh_nic_classify(&nic, 1);
	assert_int_equal(nic.kind, MESH_NIC_WIRELESS);
}
