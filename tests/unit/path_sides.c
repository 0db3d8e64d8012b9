/* SPDX-License-Identifier: Apache-2.0 */
/* path_sides.c - the NICs of two nodes, and the paths between them, as texts. */
#include "path_sides.h"
#include "unit.h"

struct mesh_path_choice chosen;
int paths_asked;

struct path_side path_side(const char *addrs)
{
	static const enum mesh_provider_id providers[128] = {['+'] = MESH_PROVIDER_VERBS_RXM,
							     ['!'] = MESH_PROVIDER_VERBS_RXM,
							     ['~'] = MESH_PROVIDER_TCP_RXM};
	struct path_side side = {.num = 0};
	struct mesh_endpoint_addr *nic;
	char text[MESH_ADDR_TEXT_MAX];
	size_t len;

	for (; *addrs; addrs += len + strspn(addrs + len, "+!~ ")) {
		len = strcspn(addrs, "+!~ ");
		nic = &side.nics[side.num];
		snprintf(text, sizeof(text), "%.*s", (int)len, addrs);
		if (mesh_addr_parse(text, &nic->addr))
			fail_msg("%s is not read", text);
		nic->nic = (uint8_t)(PATH_SIDE_FIRST + side.num++);
		nic->provider = providers[(int)addrs[len]];
		nic->provider = nic->provider ? nic->provider : MESH_PROVIDER_TCP;
		nic->also_tcp = addrs[len] == '+';
	}
	return side;
}

bool paths_lead_all(const struct mesh_endpoint_addr *local, const struct mesh_endpoint_addr *remote,
		    const void *arg)
{
	paths_asked++;
	return true;
}

bool paths_lead_rails(const struct mesh_endpoint_addr *local,
		      const struct mesh_endpoint_addr *remote, const void *arg)
{
	return paths_lead_all(local, remote, arg) && local->nic == remote->nic;
}

int paths_choose(const struct path_side *local, const struct path_side *remote,
		 mesh_path_leads *leads, const struct mesh_path_hints *hints)
{
	paths_asked = 0;
	memset(&chosen, 0xa5, sizeof(chosen));
	mesh_path_choose(local->nics, local->num, remote->nics, remote->num, hints, &chosen);
	if (leads)
		mesh_path_choose_routed(local->nics, local->num, remote->nics, remote->num, hints,
					leads, NULL, &chosen);
	return chosen.num_candidates;
}

static void texts_are(const char *wanted, int num, bool reasons)
{
	static const char classes[][3] = {"", "d", "f", "r", "dr", "fr", "s", "sr", "u"};
	static const char signs[] = "?+-~";
	char text[4096] = "";
	int i, len = 0;

	for (i = 0; i < chosen.num_candidates && i != num; i++) {
		const struct mesh_path_candidate *pair = &chosen.candidates[i];

		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%d%c%d%s%s%s",
				i ? " " : "", pair->local, signs[pair->provider], pair->remote,
				classes[pair->class], reasons ? ":" : "",
				reasons ? mesh_path_reason_word(pair->reason) : "");
	}
	assert_string_equal(text, wanted);
}

void paths_are(const char *wanted, int num)
{
	texts_are(wanted, num, false);
}

void path_reasons_are(const char *wanted, int num)
{
	texts_are(wanted, num, true);
}
