/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - runs the subcommands whose output the page shows, and keeps it. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads.h"

#include "common/child.h"
#include "serve/page.h"

/* So long after the last request the documents are still made again. */
#define WATCHED_MS 10000
/* Requests wait so long for the first copy. */
#define WAIT_MS 15000
#define PROGRAM_TIMEOUT_MS 30000
#define ARGUMENTS_MAX 6

/* One document: a subcommand, and how often it is run. */
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
	char *text; /* owned; NULL: it was not made yet, or that failed */
	size_t size;
	char complaint[CHILD_COMPLAINT_MAX];
	uint64_t made_ms;   /* 0: never */
	uint64_t wanted_ms; /* of the last request; 0: never */
};

struct serve_page {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* a request has come, or the end */
	pthread_cond_t made;   /* a document has been made, or the end */
	bool ends;
	struct document documents[DOCUMENTS];
};

/* ---- the thread --------------------------------------------------------------------------- */

/* In the child. The file may have been replaced by a later version. */
static void program_become(void *arg)
{
	execv("/proc/self/exe", arg);
	_exit(127);
}

/*
 * The document that is due, or -1; the one that has waited longest is first. Its lock is held.
 *
 * @due_ms: when the next one is due; UINT64_MAX: when a request comes
 */
static int document_due(const struct serve_page *page, uint64_t now_ms, uint64_t *due_ms)
{
	uint64_t due, first_ms = UINT64_MAX;
	int i, first = -1;

	for (i = 0; i < DOCUMENTS; i++) {
		const struct document *document = &page->documents[i];

		if (!document->wanted_ms || now_ms > document->wanted_ms + WATCHED_MS)
			continue;
		due = document->made_ms ? document->made_ms + rows[i].period_ms : 0;
		if (due < first_ms) {
			first_ms = due;
			first = i;
		}
	}
	*due_ms = first_ms;
	return first >= 0 && first_ms <= now_ms ? first : -1;
}

/* Runs the subcommand without the lock. */
static void document_make(struct serve_page *page, int index)
{
	struct document *document = &page->documents[index];
	struct child_result result;
	int ret;

	pthread_mutex_unlock(&page->lock);
	ret = child_run(program_become, (void *)rows[index].argv, PROGRAM_TIMEOUT_MS, &result);
	pthread_mutex_lock(&page->lock);
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
	pthread_cond_broadcast(&page->made);
}

static struct timespec time_of(uint64_t ms)
{
	return (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
}

static void *page_main(void *arg)
{
	struct serve_page *page = arg;
	struct timespec until;
	uint64_t due_ms;
	int index;

	pthread_mutex_lock(&page->lock);
	while (!page->ends) {
		index = document_due(page, mesh_clock_ms(), &due_ms);
		until = time_of(due_ms);
		if (index >= 0)
			document_make(page, index);
		else if (due_ms == UINT64_MAX)
			pthread_cond_wait(&page->wanted, &page->lock);
		else
			pthread_cond_timedwait(&page->wanted, &page->lock, &until);
	}
	pthread_mutex_unlock(&page->lock);
	return NULL;
}

/* ---- from outside ------------------------------------------------------------------------- */

/* Both conditions follow mesh_clock_ms(), which is CLOCK_MONOTONIC. */
static void locks_init(struct serve_page *page)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&page->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&page->wanted, &attributes);
	pthread_cond_init(&page->made, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void page_free(struct serve_page *page)
{
	int i;

	for (i = 0; i < DOCUMENTS; i++)
		free(page->documents[i].text);
	pthread_cond_destroy(&page->wanted);
	pthread_cond_destroy(&page->made);
	pthread_mutex_destroy(&page->lock);
	free(page);
}

struct serve_page *serve_page_open(void)
{
	struct serve_page *page = calloc(1, sizeof(*page));

	if (!page)
		return NULL;
	locks_init(page);
	if (!mesh_thread_create(&page->thread, "fi_mesh-page", page_main, page))
		return page;
	page_free(page);
	return NULL;
}

void serve_page_interrupt(struct serve_page *page)
{
	pthread_mutex_lock(&page->lock);
	page->ends = true;
	pthread_cond_broadcast(&page->wanted);
	pthread_cond_broadcast(&page->made);
	pthread_mutex_unlock(&page->lock);
}

void serve_page_close(struct serve_page *page)
{
	serve_page_interrupt(page);
	pthread_join(page->thread, NULL);
	page_free(page);
}

/* A copy that is older than a few periods was made for an earlier visitor. */
static bool is_fresh(const struct document *document, int index, uint64_t now_ms)
{
	return document->made_ms && now_ms < document->made_ms + rows[index].period_ms + WATCHED_MS;
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
	uint64_t now_ms = mesh_clock_ms(), until_ms = now_ms + WAIT_MS;
	struct timespec until = time_of(until_ms);
	int index, ret = -EAGAIN;

	memset(document, 0, sizeof(*document));
	for (index = 0; index < DOCUMENTS && strcmp(rows[index].path, path) != 0; index++)
		;
	if (index == DOCUMENTS)
		return -ENOENT;
	document->type = rows[index].type;
	pthread_mutex_lock(&page->lock);
	page->documents[index].wanted_ms = now_ms;
	pthread_cond_signal(&page->wanted);
	while (!page->ends && now_ms < until_ms &&
	       !is_fresh(&page->documents[index], index, now_ms)) {
		pthread_cond_timedwait(&page->made, &page->lock, &until);
		now_ms = mesh_clock_ms();
	}
	if (is_fresh(&page->documents[index], index, now_ms))
		ret = document_copy(&page->documents[index], document);
	else
		snprintf(document->complaint, sizeof(document->complaint),
			 "fi_mesh %s has not ended yet", rows[index].argv[1]);
	pthread_mutex_unlock(&page->lock);
	return ret;
}
