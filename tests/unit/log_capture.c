/* SPDX-License-Identifier: Apache-2.0 */
/* log_capture.c - a log sink that keeps the lines. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "log_capture.h"

#define LINES_MAX 256

struct captured_line {
	enum mesh_log_level level;
	char text[MESH_LOG_LINE_MAX];
};

static struct captured_line lines[LINES_MAX];
static int num_lines;
static pthread_mutex_t lines_mutex = PTHREAD_MUTEX_INITIALIZER;

static void line_keep(enum mesh_log_level level, const char *file, int line, const char *text)
{
	pthread_mutex_lock(&lines_mutex);
	if (num_lines < LINES_MAX) {
		lines[num_lines].level = level;
		snprintf(lines[num_lines].text, sizeof(lines[0].text), "%s", text);
		num_lines++;
	}
	pthread_mutex_unlock(&lines_mutex);
}

void log_capture_start(void)
{
	pthread_mutex_lock(&lines_mutex);
	num_lines = 0;
	pthread_mutex_unlock(&lines_mutex);
	mesh_log_sink_set(line_keep);
}

void log_capture_stop(void)
{
	mesh_log_sink_set(NULL);
}

int log_captured_lines(enum mesh_log_level level)
{
	int i, count = 0;

	pthread_mutex_lock(&lines_mutex);
	for (i = 0; i < num_lines; i++)
		count += lines[i].level == level;
	pthread_mutex_unlock(&lines_mutex);
	return count;
}

int log_captured_times(enum mesh_log_level level, const char *part)
{
	int i, count = 0;

	pthread_mutex_lock(&lines_mutex);
	for (i = 0; i < num_lines; i++)
		count += lines[i].level == level && strstr(lines[i].text, part);
	pthread_mutex_unlock(&lines_mutex);
	return count;
}

bool log_captured(enum mesh_log_level level, const char *part)
{
	if (log_captured_times(level, part))
		return true;
	fprintf(stderr, "no line has \"%s\"; there are:\n", part);
	pthread_mutex_lock(&lines_mutex);
	for (int i = 0; i < num_lines; i++)
		fprintf(stderr, "\t%d %s\n", lines[i].level, lines[i].text);
	pthread_mutex_unlock(&lines_mutex);
	return false;
}
