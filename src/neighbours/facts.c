/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c - what the answers of neighbours say about our cables. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "neighbours/facts.h"

/* Named for each of our NICs; a switch may have many more. */
#define NAMED_MAX 3

bool mesh_heard_is_own(const struct mesh_asking *asking, const struct mesh_heard *heard)
{
	return !heard->error && heard->about.node_id == asking->self->node_id;
}

const struct mesh_heard *mesh_asked_own(const struct mesh_asking *asking, int index, int *others)
{
	const struct mesh_asked *asked = &asking->asked[index];
	const struct mesh_heard *own = NULL;
	int i;

	*others = 0;
	for (i = 0; i < asked->num_heard; i++) {
		if (mesh_heard_is_own(asking, asked->heard[i]))
			own = asked->heard[i];
		else
			++*others;
	}
	return own;
}

static bool is_heard(const struct mesh_asked *asked, const struct mesh_neighbour *about)
{
	int i;

	for (i = 0; i < asked->num_heard; i++) {
		if (!asked->heard[i]->error && asked->heard[i]->about.node_id == about->node_id &&
		    !strcmp(asked->heard[i]->about.netdev, about->netdev))
			return true;
	}
	return false;
}

/* The only NIC of another node that is heard here, or NULL. */
static const struct mesh_neighbour *only_neighbour(const struct mesh_asking *asking, int index)
{
	const struct mesh_asked *asked = &asking->asked[index];
	const struct mesh_heard *only = NULL;
	int i;

	for (i = 0; i < asked->num_heard; i++) {
		if (mesh_heard_is_own(asking, asked->heard[i]))
			continue;
		if (only || asked->heard[i]->error)
			return NULL;
		only = asked->heard[i];
	}
	return only ? &only->about : NULL;
}

int mesh_asked_shared(const struct mesh_asking *asking, int index,
		      const struct mesh_neighbour **about)
{
	int i;

	*about = only_neighbour(asking, index);
	for (i = 0; *about && i < asking->num_links; i++) {
		if (i != index && is_heard(&asking->asked[i], *about))
			return i;
	}
	return -1;
}

/* ---- words --------------------------------------------------------------------------------- */

struct words {
	char *text;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void words_add(struct words *words, const char *format,
							    ...)
{
	va_list args;
	int n;

	if (words->used >= words->size)
		return;
	va_start(args, format);
	n = vsnprintf(words->text + words->used, words->size - words->used, format, args);
	va_end(args);
	if (n > 0)
		words->used += (size_t)n;
}

static void clause_begin(struct words *words)
{
	words_add(words, "%s", words->used ? "; " : "Neighbours: ");
}

static void neighbour_add(struct words *words, const struct mesh_neighbour *ours,
			  const struct mesh_heard *heard)
{
	const struct mesh_neighbour *theirs = &heard->about;

	clause_begin(words);
	words_add(words, "%s leads to node %s", ours->netdev, theirs->node);
	if (!heard->error)
		words_add(words, " (%s)", theirs->netdev);
	if (heard->error || theirs->protocol != ours->protocol) {
		words_add(words, ", which has another version, nccl-net-mesh %s", theirs->product);
		return;
	}
	if (theirs->mtu && ours->mtu && theirs->mtu != ours->mtu)
		words_add(words, ", whose MTU is %u, that of %s is %u", theirs->mtu, ours->netdev,
			  ours->mtu);
}

/* A NIC before @index is the other end of its cable, and has heard it. */
static bool is_said(const struct mesh_asking *asking, int index, const char *netdev)
{
	int i;

	for (i = 0; i < index; i++) {
		if (!strcmp(asking->links[i].about.netdev, netdev))
			return is_heard(&asking->asked[i], &asking->links[index].about);
	}
	return false;
}

static void nic_add(struct words *words, const struct mesh_asking *asking, int index)
{
	const struct mesh_asked *asked = &asking->asked[index];
	const struct mesh_neighbour *ours = &asking->links[index].about, *about;
	int others, other, i, named = 0;
	const struct mesh_heard *own = mesh_asked_own(asking, index, &others);

	if (!asked->num_heard) {
		clause_begin(words);
		words_add(words, "%s has no answer", ours->netdev);
	} else if (own && !others && !is_said(asking, index, own->about.netdev)) {
		clause_begin(words);
		words_add(words, "both ends of one cable are on this node: %s and %s", ours->netdev,
			  own->about.netdev);
	}
	for (i = 0; i < asked->num_heard && named < NAMED_MAX; i++) {
		if (mesh_heard_is_own(asking, asked->heard[i]))
			continue;
		neighbour_add(words, ours, asked->heard[i]);
		named++;
	}
	if (others > named)
		words_add(words, " and %d more", others - named);
	other = mesh_asked_shared(asking, index, &about);
	if (other > index)
		words_add(words, ", and so does %s: two cables lead to one NIC",
			  asking->links[other].about.netdev);
}

const char *mesh_asking_words(const struct mesh_asking *asking, char *text, size_t size)
{
	struct words words = {text, size, 0};
	int i;

	*text = '\0';
	for (i = 0; i < asking->num_links; i++)
		nic_add(&words, asking, i);
	return text;
}
