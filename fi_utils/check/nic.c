/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic.c - checks of single NICs: carrier, `fi_mesh drain`, speed, MTU, PCIe link, and how TCP paces
 * itself there.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/addr.h"
#include "nic/nic_select.h"

#include "check/checks.h"
#include "check/context.h"
#include "common/finding.h"
#include "common/pci_link.h"

/*
 * From this rate on, packets of 1,500 bytes limit the bandwidth more than the cable does, as
 * measurements with MTU 1500 and 9000 on 100 Gb/s show.
 */
#define FAST_MBPS 25000
#define USUAL_MTU 1500
/* RoCE packets hold 4,096 bytes and 104 of headers at most (IBTA, annex A17). */
#define ROCE_FULL_MTU 4200
#define JUMBO_MTU 9000

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- carrier ---------------------------------------------------------------------------- */

/*
 * True for a port of a bridge or bond, and for the NIC below a VLAN: the upper interface has the
 * addresses.
 */
static bool nic_is_below(const struct check_context *context, const struct mesh_nic *nic)
{
	bool below = nic->master;
	struct dirent **entries = NULL;
	char path[64];
	int i, num;

	snprintf(path, sizeof(path), "sys/class/net/%s", nic->netdev);
	num = mesh_sysfs_list(&context->files, path, &entries);
	for (i = 0; i < num && !below; i++)
		below = !strncmp(entries[i]->d_name, "upper_", 6);
	mesh_sysfs_list_free(entries, num);
	return below;
}

static void nic_drained(const struct check_context *context, const struct mesh_nic *nic,
			struct check_result *result)
{
	if (!mesh_drain_marks_have(&context->drained, nic->netdev))
		return;
	check_say(result, CHECK_WARN,
		  "%s is drained: connections that have another path do not use it", nic->netdev);
	check_fix(result, "fi_mesh undrain %s", nic->netdev);
}

static void nic_carrier(const struct check_context *context, const struct mesh_nic *nic,
			struct check_result *result)
{
	const struct mesh_addr *addr = check_given_address(nic);
	char text[MESH_ADDR_TEXT_MAX];

	if (addr && nic->state == MESH_NIC_DOWN) {
		check_say(result, CHECK_FAIL, "%s has the address %s but is down", nic->netdev,
			  mesh_addr_text_prefix(addr, text));
		check_seen(result, "ip link show %s: not UP", nic->netdev);
		check_fix(result, "ip link set %s up", nic->netdev);
	} else if (addr && !mesh_nic_has_carrier(nic)) {
		check_say(result, CHECK_FAIL,
			  "%s has the address %s but no carrier: its cable is unplugged, or the "
			  "port at the other end is down",
			  nic->netdev, mesh_addr_text_prefix(addr, text));
		check_seen(result, "ip link show %s: NO-CARRIER", nic->netdev);
		check_fix(result, "reseat the cable; at the other end: ip link set NIC up");
	} else if (mesh_nic_has_carrier(nic) && !nic->num_addrs && !nic_is_below(context, nic)) {
		check_say(result, CHECK_WARN,
			  "%s has a carrier but no address, so the mesh cannot use it",
			  nic->netdev);
		check_seen(result, "ip address show %s: none%s", nic->netdev,
			   nic->num_unready ? " that can be bound (tentative or duplicate)" : "");
		check_fix(result, "`fi_mesh up`, or by hand: ip address add ADDRESS/PREFIX dev %s",
			  nic->netdev);
	}
}

void check_carrier(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	int i;

	for (i = 0; i < table->num_nics; i++)
		if (check_nic_is_wanted(context, &table->nics[i])) {
			nic_carrier(context, &table->nics[i], result);
			nic_drained(context, &table->nics[i], result);
		}
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "every NIC with an address has a carrier");
}

/* ---- speed ------------------------------------------------------------------------------ */

static bool read_net(const struct check_context *context, const struct mesh_nic *nic,
		     const char *file, char *text, size_t size)
{
	return !mesh_sysfs_read(&context->files, text, size, "sys/class/net/%s/%s", nic->netdev,
				file);
}

/* True if both NICs are ports of one kind of card. */
static bool same_model(const struct check_context *context, const struct mesh_nic *a,
		       const struct mesh_nic *b)
{
	char ids[2][2][32];
	const struct mesh_nic *nics[] = {a, b};
	int i;

	for (i = 0; i < 2; i++)
		if (!read_net(context, nics[i], "device/vendor", ids[i][0], sizeof(ids[i][0])) ||
		    !read_net(context, nics[i], "device/device", ids[i][1], sizeof(ids[i][1])))
			return false;
	return !strcmp(ids[0][0], ids[1][0]) && !strcmp(ids[0][1], ids[1][1]) && a->kind == b->kind;
}

/* A faster taken NIC of the same kind of card, or NULL. */
static const struct mesh_nic *faster_twin(const struct check_context *context,
					  const struct mesh_nic *nic)
{
	const struct mesh_nic_table *table = &context->table;
	int i;

	for (i = 0; i < table->num_taken; i++)
		if (table->nics[i].speed_mbps > nic->speed_mbps &&
		    same_model(context, &table->nics[i], nic))
			return &table->nics[i];
	return NULL;
}

/* USB4 version 1 has two lanes of 20 Gb/s. */
#define USB4_GBPS 40

/*
 * A network over USB4 reports no speed. Its NIC is a service of the other host, whose folder has
 * the lanes and the speed of each (Linux 5.13, sysfs-bus-thunderbolt). Returns false for others.
 */
static bool usb4_speed(const struct check_context *context, const struct mesh_nic *nic,
		       struct check_result *result)
{
	char lanes[16], speed[32];
	double gbps;

	if (!read_net(context, nic, "device/../rx_lanes", lanes, sizeof(lanes)) ||
	    !read_net(context, nic, "device/../rx_speed", speed, sizeof(speed)))
		return false;
	gbps = strtod(lanes, NULL) * strtod(speed, NULL);
	if (gbps <= 0)
		return false;
	if (gbps >= USB4_GBPS)
		return true;
	check_say(result, CHECK_WARN,
		  "the USB4 link of %s runs at %g Gb/s instead of %d: %s lane%s of %s", nic->netdev,
		  gbps, USB4_GBPS, lanes, strcmp(lanes, "1") ? "s" : "", speed);
	check_seen(result, "/sys/class/net/%s/device/../rx_lanes, rx_speed", nic->netdev);
	check_fix(result, "disconnect the cable, and connect it again when both nodes have booted: "
			  "on some boards the order of booting decides; the cable must be one for "
			  "40 Gb/s");
	return true;
}

static void nic_speed(const struct check_context *context, const struct mesh_nic *nic,
		      struct check_result *result)
{
	char speed[MESH_NIC_SPEED_TEXT_MAX], other[MESH_NIC_SPEED_TEXT_MAX], duplex[16];
	const struct mesh_nic *twin;

	if (read_net(context, nic, "duplex", duplex, sizeof(duplex)) && !strcmp(duplex, "half")) {
		check_say(result, CHECK_FAIL,
			  "%s runs at half duplex: it loses packets as soon as both ends send",
			  nic->netdev);
		check_seen(result, "/sys/class/net/%s/duplex = half", nic->netdev);
		check_fix(result, "ethtool -s %s autoneg on (at both ends)", nic->netdev);
	}
	if (usb4_speed(context, nic, result))
		return;
	if (!nic->speed_mbps) {
		check_say(result, CHECK_UNKNOWN, "%s does not report its speed", nic->netdev);
		return;
	}
	twin = faster_twin(context, nic);
	if (!twin)
		return;
	check_say(result, CHECK_WARN,
		  "%s runs at %s, while %s, a port of the same kind of card, runs at %s",
		  nic->netdev, mesh_nic_speed_text(nic->speed_mbps, speed), twin->netdev,
		  mesh_nic_speed_text(twin->speed_mbps, other));
	check_seen(result, "/sys/class/net/%s/speed", nic->netdev);
	check_fix(result,
		  "try the cable of %s here: a cable or module for a lower rate, or a port "
		  "set to one, is the usual cause (ethtool %s)",
		  twin->netdev, nic->netdev);
}

void check_speed(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	int i;

	for (i = 0; i < table->num_taken; i++)
		nic_speed(context, &table->nics[i], result);
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "all mesh NICs run at full speed and full duplex");
}

/* ---- MTU -------------------------------------------------------------------------------- */

static void nic_mtu(const struct mesh_nic *nic, struct check_result *result)
{
	char speed[MESH_NIC_SPEED_TEXT_MAX];
	bool rdma = *nic->rdma.device;

	if (rdma && nic->mtu < ROCE_FULL_MTU)
		check_say(result, CHECK_WARN,
			  "%s has MTU %d: RoCE then sends packets of %d bytes instead of 4096",
			  nic->netdev, nic->mtu, nic->mtu < 2200 ? 1024 : 2048);
	else if (nic->speed_mbps >= FAST_MBPS && nic->mtu <= USUAL_MTU)
		check_say(result, CHECK_WARN, "%s has MTU %d at %s: small packets cost bandwidth",
			  nic->netdev, nic->mtu, mesh_nic_speed_text(nic->speed_mbps, speed));
	else
		return;
	check_seen(result, "ip link show %s: mtu %d", nic->netdev, nic->mtu);
	check_fix(
		result,
		"`fi_mesh up`, or until the next boot, at both ends by hand: ip link set %s mtu %d",
		nic->netdev, JUMBO_MTU);
}

/* IPoIB's MTU is separate: it does not limit the RDMA transfers on the same port. */
static bool mtu_counts(const struct mesh_nic *nic)
{
	return nic->kind != MESH_NIC_INFINIBAND;
}

static void mtus_differ(const struct mesh_nic_table *table, struct check_result *result)
{
	const struct mesh_nic *low = NULL, *high = NULL, *nic;

	for (nic = table->nics; nic < table->nics + table->num_taken; nic++) {
		if (!mtu_counts(nic))
			continue;
		low = !low || nic->mtu < low->mtu ? nic : low;
		high = !high || nic->mtu > high->mtu ? nic : high;
	}
	if (!low || low->mtu == high->mtu)
		return;
	check_say(result, CHECK_WARN,
		  "the mesh NICs have different MTUs: %s has %d, %s has %d; both ends of a cable "
		  "must agree",
		  low->netdev, low->mtu, high->netdev, high->mtu);
	check_seen(result, "ip link show");
	check_fix(result, "`fi_mesh up`, or by hand: ip link set %s mtu %d", low->netdev,
		  high->mtu);
}

void check_mtu(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	int i;

	for (i = 0; i < table->num_taken; i++)
		if (mtu_counts(&table->nics[i]))
			nic_mtu(&table->nics[i], result);
	mtus_differ(table, result);
	if (!result->num_findings)
		check_say(
			result, CHECK_PASS,
			"the MTUs of the mesh NICs fit their speeds; `fi_mesh check --peer` tests "
			"whether full frames arrive");
}

/* ---- PCIe ------------------------------------------------------------------------------- */

static void reduced_fix(const struct mesh_nic *nic, struct check_result *result)
{
	const struct mesh_pci_link *link = &nic->pci_link;

	if (link->slot_width && link->slot_width <= link->width && link->width < link->max_width)
		check_fix(result,
			  "the slot has %d lanes: move the card to one with %d, or accept this "
			  "(lspci -vv -s %s shows LnkSta and LnkCap)",
			  link->slot_width, link->max_width, base_name(nic->pci_path));
	else
		check_fix(result,
			  "reseat the card and its adapter or riser cable, and check the "
			  "slot's lanes and generation in the BIOS (lspci -vv -s %s shows LnkSta "
			  "and LnkCap)",
			  base_name(nic->pci_path));
}

static void nic_pcie(const struct mesh_nic *nic, struct check_result *result)
{
	const struct mesh_pci_link *link = &nic->pci_link;
	char now[MESH_PCI_LINK_TEXT_MAX], best[MESH_PCI_LINK_TEXT_MAX];
	char carries[MESH_NIC_SPEED_TEXT_MAX], port[MESH_NIC_SPEED_TEXT_MAX];
	int mbps = mesh_pci_link_mbps(link->width, link->speed_mts);
	bool limits = mbps && mbps < nic->speed_mbps;

	mesh_pci_link_text(link->width, link->speed_mts, now);
	mesh_pci_link_text(link->max_width, link->max_speed_mts, best);
	mesh_nic_speed_text(mbps / 100 * 100, carries);
	mesh_nic_speed_text(nic->speed_mbps, port);
	if (mesh_pci_link_is_reduced(link)) {
		check_say(result, CHECK_WARN,
			  "the card of %s runs on PCIe %s, but could do %s: %s%s%s%s", nic->netdev,
			  now, best, "its slot carries at most ", carries,
			  limits ? ", less than the port's " : "", limits ? port : "");
		check_seen(result, "%s/current_link_width, current_link_speed", nic->pci_path);
		reduced_fix(nic, result);
	} else if (limits) {
		check_say(
			result, CHECK_PASS,
			"%s has the full PCIe link of its card, %s, which carries %s of the port's "
			"%s",
			nic->netdev, now, carries, port);
	}
}

void check_pcie(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	int i, known = 0;

	for (i = 0; i < table->num_nics; i++) {
		if (!check_nic_is_wanted(context, &table->nics[i]) ||
		    !table->nics[i].pci_link.max_width)
			continue;
		known++;
		nic_pcie(&table->nics[i], result);
	}
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "%s",
			  known ? "every NIC has all the PCIe lanes and speed that its card can use"
				: "no NIC has a PCIe link that the kernel shows");
}

/* ---- TCP -------------------------------------------------------------------------------- */

#define FILE_CONGESTION "proc/sys/net/ipv4/tcp_congestion_control"
#define FILE_AVAILABLE "proc/sys/net/ipv4/tcp_available_congestion_control"

/* The wanted NIC that libfabric would use TCP on; NULL if there is none. */
static const struct mesh_nic *tcp_nic(const struct check_context *context)
{
	enum mesh_provider_id provider = mesh_provider_id_parse(context->config.provider);
	const struct mesh_nic *nic;
	int i;

	for (i = 0; i < context->table.num_nics; i++) {
		nic = &context->table.nics[i];
		if (!check_nic_is_wanted(context, nic))
			continue;
		if (provider == MESH_PROVIDER_NONE ? !*nic->rdma.device
						   : provider != MESH_PROVIDER_VERBS_RXM)
			return nic;
	}
	return NULL;
}

/* Linux's default if this kernel has it, else reno, which every kernel has. */
static const char *unpaced_control(const struct check_context *context)
{
	char available[256];

	if (!mesh_sysfs_read(&context->files, available, sizeof(available), FILE_AVAILABLE) &&
	    !strstr(available, "cubic"))
		return "reno";
	return "cubic";
}

void check_congestion(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic *nic = tcp_nic(context);
	char name[32];

	if (!nic) {
		check_say(result, CHECK_PASS, "no NIC carries messages over TCP");
		return;
	}
	if (mesh_sysfs_read(&context->files, name, sizeof(name), FILE_CONGESTION)) {
		check_say(result, CHECK_UNKNOWN, "/" FILE_CONGESTION " cannot be read");
		return;
	}
	/* It limits its rate as if the path were shared: docs/performance.md. */
	if (!strncmp(name, "bbr", 3)) {
		check_say(result, CHECK_WARN,
			  "TCP paces itself (%s), which on a direct cable, such as that of "
			  "%s, can cost half of the bandwidth",
			  name, nic->netdev);
		check_seen(result, "/" FILE_CONGESTION ": %s", name);
		check_fix(result, "sysctl -w net.ipv4.tcp_congestion_control=%s",
			  unpaced_control(context));
		return;
	}
	check_say(result, CHECK_PASS, "TCP does not pace itself: it uses %s", name);
}
