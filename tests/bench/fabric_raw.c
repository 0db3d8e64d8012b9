/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_raw - what libfabric alone carries between two addresses: the yardstick for the plugin. */
#include <sys/resource.h>

#include "raw_flow.h"
#include "raw_options.h"

#define RAW_CALIBRATION_START 16

/* What the client orders over the side channel. count 0 ends the session. */
struct raw_command {
	uint32_t count;
	uint32_t full_check;
	uint64_t size;
};

struct raw_session {
	const struct raw_options *options;
	struct raw_params params;
	struct raw_link link;
	struct raw_flow flow;
	int side;
	double cpu_s;	   /* CPU seconds of both ends in the last run */
	uint32_t *samples; /* round trips of the last pingpong, ns */
};

/* --- two ends in step --- */

/* Reads from the side channel while the CQ is polled: the peer may need our progress. */
static int session_wait_side(struct raw_session *session, void *data, size_t len)
{
	char *at = data;

	while (len > 0) {
		ssize_t n = recv(session->side, at, len, MSG_DONTWAIT);
		int ret;

		if (n > 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return raw_failed("side channel: the peer ended", n ? -errno : -ECONNRESET);
		ret = raw_poll(&session->flow);
		if (ret)
			return ret;
	}
	return 0;
}

static int session_barrier(struct raw_session *session)
{
	uint8_t token = 0;
	int ret = raw_side_write(session->side, &token, 1);

	return ret ? ret : session_wait_side(session, &token, 1);
}

/* --- the runs --- */

static int stream_send(struct raw_flow *flow, uint32_t count)
{
	while (flow->tx_done < count) {
		int ret = 0;

		while (!ret && flow->tx_next < count)
			ret = raw_send_next(flow);
		if (ret && ret != -FI_EAGAIN)
			return ret;
		ret = raw_poll(flow);
		if (ret)
			return ret;
	}
	return 0;
}

static int stream_receive(struct raw_flow *flow, uint32_t count)
{
	while (flow->rx_done < count) {
		int ret = raw_fill_receives(flow, flow->params->window, count);

		if (!ret)
			ret = raw_poll(flow);
		if (ret)
			return ret;
	}
	return 0;
}

static int pingpong_send(struct raw_flow *flow)
{
	for (;;) {
		int ret = raw_send_next(flow);

		if (ret != -FI_EAGAIN)
			return ret;
		ret = raw_poll(flow);
		if (ret)
			return ret;
	}
}

static int pingpong_receive(struct raw_flow *flow, uint32_t number)
{
	while (flow->rx_done < number) {
		int ret = raw_poll(flow);

		/* A receive that found no room before is tried again. */
		if (!ret && flow->rx_next < number)
			ret = raw_fill_receives(flow, 1, number);
		if (ret)
			return ret;
	}
	return 0;
}

static int pingpong(struct raw_flow *flow, uint32_t count, bool first, uint32_t *samples)
{
	const uint32_t ahead = flow->params->window;
	uint64_t before = raw_now_ns();
	int ret = 0;

	for (uint32_t i = 0; !ret && i < count; i++) {
		if (!first)
			ret = pingpong_receive(flow, i + 1);
		if (!ret)
			ret = pingpong_send(flow);
		if (!ret)
			ret = raw_fill_receives(flow, ahead, count);
		if (first && !ret) {
			const uint64_t start = before;

			ret = pingpong_receive(flow, i + 1);
			before = raw_now_ns();
			samples[i] = (uint32_t)(before - start);
		}
	}
	while (!ret && flow->tx_done < count)
		ret = raw_poll(flow);
	return ret;
}

static double cpu_seconds(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* Both ends have ended the run: they exchange the CPU time that they used. */
static int session_end_run(struct raw_session *session, double used)
{
	double peer = 0;
	int ret = raw_side_write(session->side, &used, sizeof(used));

	if (!ret)
		ret = session_wait_side(session, &peer, sizeof(peer));
	session->cpu_s = used + peer;
	return ret;
}

/* One run of `count` messages, or exchanges, at one end. Returns the elapsed time in *ns. */
static int session_run(struct raw_session *session, const struct raw_command *command, uint64_t *ns)
{
	const bool is_client = session->options->peer != NULL;
	struct raw_flow *flow = &session->flow;
	const bool stream = session->params.mode == RAW_STREAM;
	uint64_t start;
	double used;
	int ret = 0;

	raw_flow_reset(flow, command->size, command->full_check);
	ret = session_barrier(session);
	if (!ret && !(stream && is_client))
		ret = raw_fill_receives(flow, session->params.window, command->count);
	if (!ret)
		ret = session_barrier(session);
	if (ret)
		return ret;
	used = cpu_seconds();
	start = raw_now_ns();
	if (!stream)
		ret = pingpong(flow, command->count, is_client, session->samples);
	else if (is_client)
		ret = stream_send(flow, command->count);
	else
		ret = stream_receive(flow, command->count);
	/* A stream ends when all of it has arrived. */
	if (!ret && stream)
		ret = session_barrier(session);
	*ns = raw_now_ns() - start;
	return ret ? ret : session_end_run(session, cpu_seconds() - used);
}

static int client_run(struct raw_session *session, uint64_t size, uint32_t count, bool full_check,
		      uint64_t *ns)
{
	const struct raw_command command = {.count = count, .full_check = full_check, .size = size};
	int ret = raw_side_write(session->side, &command, sizeof(command));

	return ret ? ret : session_run(session, &command, ns);
}

/* --- the client's side of one size --- */

static int compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(struct raw_session *session, uint64_t size, uint32_t count, uint64_t ns)
{
	const struct raw_params *params = &session->params;
	const bool json = session->options->json, stream = params->mode == RAW_STREAM;
	const char *provider = session->link.info->fabric_attr->prov_name;
	double value = (double)size * count * 8 / (double)ns, p99 = 0, least = 0;

	if (!stream) {
		qsort(session->samples, count, sizeof(session->samples[0]), compare_u32);
		value = session->samples[count / 2] / 2000.0;
		p99 = session->samples[count - 1 - count / 100] / 2000.0;
		least = session->samples[0] / 2000.0;
	}
	printf(json ? "{\"provider\":\"%s\",\"mode\":\"%s\",\"size\":%llu,\"inflight\":%u,"
		      "\"count\":%u,\"seconds\":%.6f,"
		    : "%s %s %llu B inflight %u count %u %.3f s: ",
	       provider, raw_mode_names[params->mode], (unsigned long long)size, params->window,
	       count, (double)ns / 1e9);
	if (stream)
		printf(json ? "\"gbit_per_s\":%.4f,\"us_per_message\":%.3f,"
			      "\"cpu_s_per_gib\":%.4f}\n"
			    : "%.3f Gbit/s, %.3f us a message, %.3f CPU s per GiB\n",
		       value, (double)ns / 1e3 / count,
		       session->cpu_s / ((double)size * count / (1 << 30)));
	else
		printf(json ? "\"half_rtt_us\":%.3f,\"half_rtt_p99_us\":%.3f,"
			      "\"half_rtt_min_us\":%.3f}\n"
			    : "half round trip %.3f us (p99 %.3f, least %.3f)\n",
		       value, p99, least);
	fflush(stdout);
}

/* The next number of messages to try, after `count` took `ns`. At most 16 times more at once. */
static uint32_t next_count(const struct raw_session *session, uint32_t count, uint64_t ns)
{
	double more = session->options->seconds * 1e9 / (double)(ns ? ns : 1);
	double found = count * (more < 16 ? more : 16);

	return found >= RAW_MAX_ITERS ? RAW_MAX_ITERS : (uint32_t)found + 1;
}

/* Runs grow until one fills half of the wanted time; those before it warm everything up. */
static int measure_size(struct raw_session *session, uint64_t size)
{
	const uint32_t fixed = session->options->iters;
	const double enough_ns = session->options->seconds * 1e9 / 2;
	/* On a busy machine a few messages can fill the time, which is not a valid sample. */
	const uint32_t least = size <= 65536 ? 256 : 32;
	uint32_t count = fixed ? fixed : RAW_CALIBRATION_START;
	uint64_t ns;
	int ret = client_run(session, size, 2 * session->params.window + 3, true, &ns);

	while (!ret) {
		ret = client_run(session, size, count, false, &ns);
		if (ret || fixed || count == RAW_MAX_ITERS ||
		    ((double)ns >= enough_ns && count >= least))
			break;
		count = next_count(session, count, ns);
		if (count < least)
			count = least;
	}
	if (!ret)
		report(session, size, count, ns);
	return ret;
}

/* --- the two ends --- */

static int client(struct raw_session *session)
{
	const struct raw_command end = {0};
	int ret = 0;

	for (uint32_t i = 0; !ret && i < session->params.size_count; i++)
		ret = measure_size(session, session->params.sizes[i]);
	return ret ? ret : raw_side_write(session->side, &end, sizeof(end));
}

static int server(struct raw_session *session)
{
	struct raw_command command;
	uint64_t ns;
	int ret;

	for (;;) {
		ret = session_wait_side(session, &command, sizeof(command));
		if (ret || !command.count)
			return ret;
		if (!command.size || command.size > session->params.sizes[0])
			return raw_failed("command from the client", -EPROTO);
		ret = session_run(session, &command, &ns);
		if (ret)
			return ret;
	}
}

/* The client's parameters reach the server; sizes[0] of the server's copy becomes the largest. */
static int session_agree(struct raw_session *session)
{
	struct raw_params *params = &session->params;
	int ret;

	*params = session->options->params;
	if (session->options->peer)
		return raw_side_write(session->side, params, sizeof(*params));
	ret = raw_side_read(session->side, params, sizeof(*params));
	if (ret)
		return ret;
	if (params->magic != RAW_MAGIC || params->version != RAW_VERSION ||
	    params->mode > RAW_PINGPONG || !params->window || params->window > RAW_MAX_WINDOW ||
	    !params->yield_polls || !params->size_count || params->size_count > RAW_MAX_SIZES)
		return raw_failed("the client's parameters", -EPROTO);
	for (uint32_t i = 1; i < params->size_count; i++)
		if (params->sizes[i] > params->sizes[0])
			params->sizes[0] = params->sizes[i];
	return 0;
}

static int session_open(struct raw_session *session)
{
	const struct raw_options *options = session->options;
	struct raw_params *params = &session->params;
	uint64_t largest = 0;
	int ret = session_agree(session);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < params->size_count; i++)
		if (params->sizes[i] > largest)
			largest = params->sizes[i];
	session->samples = calloc(RAW_MAX_ITERS, sizeof(session->samples[0]));
	if (!session->samples)
		return -ENOMEM;
	session->flow.link = &session->link;
	session->flow.params = params;
	return raw_link_open(&session->link, options->provider, options->source,
			     RAW_ARENA_AREAS * raw_round_up(largest, RAW_PAGE) * params->window,
			     session->side);
}

static int run(const struct raw_options *options)
{
	struct raw_session *session = calloc(1, sizeof(*session));
	int ret;

	if (!session)
		return -ENOMEM;
	session->options = options;
	session->side = raw_side_open(options->source, options->peer, options->port);
	ret = session->side < 0 ? session->side : session_open(session);
	if (!ret)
		ret = options->peer ? client(session) : server(session);
	raw_link_close(&session->link);
	if (session->side >= 0)
		close(session->side);
	free(session->samples);
	free(session);
	return ret;
}

int main(int argc, char **argv)
{
	struct raw_options options = {
		.provider = "tcp",
		.port = "18515",
		.mode = "stream",
		.seconds = 0.5,
		.params = {.magic = RAW_MAGIC,
			   .version = RAW_VERSION,
			   .window = 8,
			   .yield_polls = RAW_YIELD_POLLS},
	};
	int status;

	memcpy(options.params.sizes, raw_default_sizes, sizeof(raw_default_sizes));
	options.params.size_count = sizeof(raw_default_sizes) / sizeof(raw_default_sizes[0]);
	status = parse_arguments(&options, argc, argv);
	if (status >= 0)
		return status;
	return run(&options) ? 1 : 0;
}
