/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - runs the subcommands whose output the page shows, and keeps it. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#include "common/child.h"
#include "serve/http.h"

#define PROGRAM_TIMEOUT_MS 30000
#define ARGUMENTS_MAX 6

/* One document: a subcommand, and how often it is run at most. */
struct document_row {
	const char *path, *type;
	const char *argv[ARGUMENTS_MAX];
	uint64_t period_ms;
};

static const struct document_row rows[] = {
	{"/mesh.svg", "image/svg+xml", {"fi_mesh", "topo", "--rates", "--svg", NULL}, 3000},
	{"/mesh.json", "application/json", {"fi_mesh", "topo", "--rates", "--json", NULL}, 3000},
	{"/watch.json",
	 "application/json",
	 {"fi_mesh", "watch", "--json", "--count", "1", NULL},
	 2000},
	{"/check.json", "application/json", {"fi_mesh", "check", "--json", NULL}, 60000},
};

#define DOCUMENTS ((int)(sizeof(rows) / sizeof(rows[0])))

struct document {
	pthread_mutex_t lock; /* also held while the subcommand runs: others wait for its output */
	char *text;	      /* owned; NULL: it was not made yet, or that failed */
	size_t size;
	char complaint[CHILD_COMPLAINT_MAX];
	uint64_t made_ms; /* 0: never */
};

struct serve_page {
	atomic_bool ends;
	struct document documents[DOCUMENTS];
};

/* In the child. The file may have been replaced by a later version. */
static void program_become(void *arg)
{
	execv("/proc/self/exe", arg);
	_exit(127);
}

static void document_make(struct document *document, const struct document_row *row)
{
	struct child_result result;
	int ret = child_run(program_become, (void *)row->argv, PROGRAM_TIMEOUT_MS, &result);

	free(document->text);
	document->text = NULL;
	document->size = 0;
	document->made_ms = mesh_clock_ms();
	snprintf(document->complaint, sizeof(document->complaint), "%s",
		 ret && !*result.complaint ? strerror(-ret) : result.complaint);
	/* Status 1 says that something is wrong with the mesh: the output says what. */
	if (!ret && result.size) {
		document->text = result.output;
		document->size = result.size;
	} else {
		free(result.output);
	}
}

struct serve_page *serve_page_open(void)
{
	struct serve_page *page = calloc(1, sizeof(*page));
	int i;

	for (i = 0; page && i < DOCUMENTS; i++)
		pthread_mutex_init(&page->documents[i].lock, NULL);
	return page;
}

void serve_page_interrupt(struct serve_page *page)
{
	page->ends = true;
}

void serve_page_close(struct serve_page *page)
{
	int i;

	for (i = 0; i < DOCUMENTS; i++) {
		free(page->documents[i].text);
		pthread_mutex_destroy(&page->documents[i].lock);
	}
	free(page);
}

static int document_copy(const struct document *from, struct serve_document *document)
{
	snprintf(document->complaint, sizeof(document->complaint), "%s", from->complaint);
	if (!from->text)
		return -EAGAIN;
	document->text = malloc(from->size + 1);
	if (!document->text)
		return -ENOMEM;
	memcpy(document->text, from->text, from->size + 1);
	document->size = from->size;
	return 0;
}

int serve_page_get(struct serve_page *page, const char *path, struct serve_document *document)
{
	struct document *made;
	int index, ret;

	memset(document, 0, sizeof(*document));
	for (index = 0; index < DOCUMENTS && strcmp(rows[index].path, path) != 0; index++)
		;
	if (index == DOCUMENTS)
		return -ENOENT;
	document->type = rows[index].type;
	made = &page->documents[index];
	pthread_mutex_lock(&made->lock);
	if (!page->ends &&
	    (!made->made_ms || mesh_clock_ms() >= made->made_ms + rows[index].period_ms))
		document_make(made, &rows[index]);
	ret = document_copy(made, document);
	pthread_mutex_unlock(&made->lock);
	return ret;
}
