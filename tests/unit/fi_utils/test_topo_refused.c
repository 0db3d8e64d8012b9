/* SPDX-License-Identifier: Apache-2.0 */
/* test_topo_refused.c - documents that `fi_mesh topo` does not read, and what it says of them. */
#include "topo/map.h"
#include "topo/print.h"

#include "unit.h"

static int read_text(struct topo_map *map, const char *text, const char *source)
{
	return topo_document_read(map, text, strlen(text), source);
}

/* The reason is one line that no terminal interprets. */
static void refused(const char *text)
{
	struct topo_map map = {.planned = false};
	FILE *saved = stderr;
	const char *at;
	char *said;
	size_t size;
	int ret;

	stderr = open_memstream(&said, &size);
	ret = read_text(&map, text, "x.json");
	fclose(stderr);
	stderr = saved;
	if (ret != -EINVAL)
		fail_msg("%s is read", text);
	for (at = said; at[1]; at++)
		if (*at < ' ' || *at > '~')
			fail_msg("%s: byte 0x%02x in what it says", text, (unsigned char)*at);
	free(said);
	topo_map_free(&map);
}

#define PLAN(nodes, cables) "{\"plan\":1,\"nodes\":" nodes ",\"cables\":" cables "}"
#define AB "[{\"name\":\"a\",\"ports\":[\"p\"]},{\"name\":\"b\",\"ports\":[\"p\"]}]"
#define END(node, addr) "{\"node\":\"" node "\",\"port\":\"p\",\"address\":\"" addr "\"}"

TEST(refused)
{
	struct topo_map map = {.planned = false};
	char text[200];

	assert_int_equal(read_text(&map,
				   PLAN(AB, "[{\"ends\":[" END("a", "10.0.0.1/24") "," END(
						    "b", "10.0.0.2/24") "]}]"),
				   "x.json"),
			 0);
	topo_map_free(&map);
	/* A shape that does not fit the nodes is ignored. */
	assert_int_equal(
		read_text(&map, "{\"plan\":1,\"shape\":\"torus:2x3\",\"nodes\":" AB "}", "x.json"),
		0);
	assert_int_equal(topo_map_join(&map), 0);
	assert_non_null(strstr(topo_summary(&map, text, sizeof(text)), "mesh: 2 nodes, 0 cables"));
	topo_map_free(&map);
	assert_int_equal(read_text(&map,
				   "{\"nics\":[{\"netdev\":\"p\",\"kind\":\"physical\","
				   "\"addresses\":[\"10.0.0.1/24\"],\"reason\":\"\\u001b[2J\"}]}",
				   "x.json"),
			 0);
	assert_string_equal(map.nics[0].note, "?[2J");
	topo_map_free(&map);
	refused("");
	refused("{");
	refused("[]");
	refused("{}");
	refused("{\"plan\":1}");
	refused("{\"plan\":2,\"nodes\":" AB ",\"cables\":[]}");
	refused(PLAN("[{}]", "[]"));
	refused(PLAN("[{\"name\":\"a b\"}]", "[]"));
	refused(PLAN("[{\"name\":\"a\",\"ports\":[7]}]", "[]"));
	refused(PLAN("[{\"name\":\"a\",\"ports\":[\"p\\n\"]}]", "[]"));
	refused(PLAN(AB, "[{}]"));
	refused(PLAN(AB, "[{\"ends\":[{},{}]}]"));
	refused(PLAN(AB, "[{\"ends\":[" END("a", "10.0.0.1/24") "," END("c", "10.0.0.2/24") "]}]"));
	refused(PLAN(AB, "[{\"ends\":[" END("a", "10.0.0.1") "," END("b", "10.0.0.2/24") "]}]"));
	refused(PLAN(AB, "[{\"ends\":[" END("a", "10.0.0.1/24") "," END("a", "10.0.0.2/24") "]}]"));
	refused("{\"nics\":[{\"taken\":true}]}");
	refused("{\"nics\":[{\"taken\":true,\"netdev\":\"x\",\"source\":\"ten\"}]}");
	refused("{\"node\":\"../x\",\"nics\":[]}");
	refused("{\"node\":\"\\u001b[2J\",\"nics\":[]}");
	refused("{\"node\":\"\\u009b2J\",\"nics\":[]}");
	refused("\x1b[2J");
	refused("{\"nics\":[{\"taken\":true,\"netdev\":\"p\\u009b\"}]}");
	refused("{\"seconds\":1,\"nics\":[]}");
	refused("{\"nics\":[]}{\"nics\":[]}");
	refused("{\"nics\":[]} x");
	/* Two nodes of one name are found when all are there. */
	assert_int_equal(read_text(&map, "{\"nics\":[]}", "a.json"), 0);
	assert_int_equal(read_text(&map, "{\"nics\":[]}", "x/a.json"), 0);
	assert_int_equal(topo_map_join(&map), -EINVAL);
	topo_map_free(&map);
}
