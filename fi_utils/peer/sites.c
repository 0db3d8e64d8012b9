/* SPDX-License-Identifier: Apache-2.0 */
/* sites.c - reports the sites (NCCL_MESH_SITE) of this node and of a peer. */
#include <string.h>

#include "common/finding.h"
#include "peer/checker.h"
#include "peer/self.h"
#include "peer/sites.h"

/* The plugin takes a node without a site as one of every site: see src/setup/connect_lanes.c. */
static void one_sided_say(const struct peer_checker *checker, const struct peer *peer,
			  const char *ours, const char *theirs, struct check_result *result)
{
	const char *set = *ours ? checker->self.name : peer->name;
	const char *unset = *ours ? peer->name : checker->self.name;
	const char *site = *ours ? ours : theirs;

	check_say(result, CHECK_WARN,
		  "node %s is in site %s, and node %s has no site: it counts as one of the same "
		  "site, so paths between the two are not those of a long line, and relays may be "
		  "in another site",
		  set, site, unset);
	check_seen(result, "NCCL_MESH_SITE of node %s is not set (`fi_mesh config` there)", unset);
	check_fix(result, "set NCCL_MESH_SITE on node %s as well, to %s if it is there", unset,
		  site);
}

void peer_sites_check(const struct peer_checker *checker, const struct peer *peer,
		      struct check_result *result)
{
	char ours[MESH_SITE_NAME_MAX];
	const char *theirs = peer->hello.site;

	peer_self_site(&checker->self, ours);
	if (!*ours && !*theirs)
		return;
	if (!*ours || !*theirs)
		one_sided_say(checker, peer, ours, theirs, result);
	else if (strcmp(ours, theirs) != 0)
		check_say(result, CHECK_PASS,
			  "two sites: this node is in %s, node %s in %s; tcp paths between them "
			  "use several connections each (lanes) if the round trip is long",
			  ours, peer->name, theirs);
	else
		check_say(result, CHECK_PASS, "both nodes are in site %s", ours);
}
