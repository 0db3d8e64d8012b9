/* SPDX-License-Identifier: Apache-2.0 */
/*
 * all_sizes.c - one of two ranks between which messages of all sizes stream in both directions,
 * while something else breaks and repairs their cables. Every byte is checked, and also that no
 * byte is written before or after its message's time: behind the message, and in a buffer that has
 * been received and is not posted again yet.
 *
 * Usage: all_sizes PLUGIN FOLDER RANK COMMS SECONDS MAX_BYTES SEED. The ranks leave each other
 * their handles in FOLDER, and "progress-of-RANK": the messages received so far. SECONDS 0: until
 * there is a file "stop".
 * ALL_SIZES_FAULT=1 makes one message wrong in one bit.
 *
 * ALL_SIZES_GUESTS=N: N comms each way also with a third process, the guest, which is rank 2 in the
 * folder FOLDER/guest-0, COMMS being N. It may be killed, after a file "killed" is there: then the
 * two ranks close those comms, leave "closed-by-RANK" there, and await the next guest in guest-1.
 * Its seed is SEED and its number. What is received from it is a number of its own in
 * "progress-of-RANK".
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nccl/net_abi.h>

#include "pause.h"
#include "rank.h"

#define CHANNELS_MAX 16
#define SLOTS 8		    /* outstanding */
#define BUFFERS (2 * SLOTS) /* half of them rest, full of POISON */
#define POISON 0xee
#define LINE 128   /* bytes, of LL128 */
#define GUARD 4096 /* bytes behind the largest message */
#define CONNECT_S 60
#define PROGRESS_MS 50
#define GUEST 2 /* its rank */
#define PATH_BYTES 512

struct side {
	void *comm, *registration, *requests[BUFFERS];
	uint8_t *data;
	uint32_t posted, done;
	uint32_t total; /* the last message is the one before; 0: not known yet */
};

struct channel {
	int id, peer;
	uint32_t seed;
	void *listener;
	uint8_t handle[NCCL_HANDLE_SIZE];
	struct side send, receive;
	bool failed; /* a call has, because the guest was killed */
};

static struct {
	const struct nccl_net_newest *net;
	const char *folder;
	char guest_folder[PATH_BYTES / 2]; /* of the guest that is there or comes next */
	int guest;			   /* its number */
	bool guest_is_there;
	int rank, num_channels, num_guests, num_devices, progress;
	size_t most, room; /* bytes: of a message, of a buffer */
	uint32_t seed;
	bool fault;
	void *context;
	struct channel channels[CHANNELS_MAX], guests[CHANNELS_MAX];
	uint8_t *poison;		  /* room bytes of it */
	uint64_t messages, bytes, visits; /* received; visits: messages of guests */
} us;

__attribute__((format(printf, 5, 6))) static void log_line(enum nccl_level level,
							   unsigned long flags, const char *file,
							   int line, const char *format, ...)
{
	static const char *const names[] = {"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};
	char text[1024];
	va_list args;

	if (level == NCCL_LEVEL_TRACE && !getenv("ALL_SIZES_TRACE"))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("%" PRIu64 " %s %s\n", clock_ms(), names[level], text);
	fflush(stdout);
}

/* ---- handles and progress ------------------------------------------------------------------ */

static bool is_guests(const struct channel *c)
{
	return c->peer == GUEST;
}

/* The name, of PATH_BYTES, of the handle that @rank leaves for the channel. */
static void handle_name(char *name, const struct channel *c, int rank)
{
	snprintf(name, PATH_BYTES, "%s/handle-%d-of-%d", is_guests(c) ? us.guest_folder : us.folder,
		 c->id, rank);
}

static void handle_take(struct channel *c, uint64_t deadline_ms)
{
	char name[PATH_BYTES];

	handle_name(name, c, c->peer);
	while (!file_read(name, c->handle, sizeof(c->handle))) {
		if (clock_ms() > deadline_ms)
			die("the other rank does not start");
		pause_us(NAP_US);
	}
}

/* The file stays open, for a process that has no descriptor left. */
static void progress_write(void)
{
	char name[PATH_BYTES], text[64];
	int len = snprintf(text, sizeof(text), "%-16" PRIu64 " %-16" PRIu64 " %-16" PRIu64 "\n",
			   us.messages, us.bytes, us.visits);

	if (!us.progress) {
		snprintf(name, sizeof(name), "%s/progress-of-%d", us.folder, us.rank);
		file_write(name, text, (size_t)len);
		us.progress = open(name, O_WRONLY);
	}
	if (pwrite(us.progress, text, (size_t)len, 0) != len)
		die("cannot write the progress");
}

static bool is_there(const char *folder, const char *file)
{
	char name[PATH_BYTES];

	snprintf(name, sizeof(name), "%s/%s", folder, file);
	return !access(name, F_OK);
}

/* Calls a function of the plugin for a channel; true on success. */
#define TRY(c, expression) channel_try(c, expression, #expression)

static bool channel_try(struct channel *c, enum nccl_result result, const char *expression)
{
	if (!result)
		return true;
	if (!is_guests(c) || !is_there(us.guest_folder, "killed"))
		die("%s returned %d: channel %d with rank %d", expression, result, c->id, c->peer);
	c->failed = true;
	return false;
}

/* ---- messages ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t word)
{
	word ^= word >> 31;
	word *= 0x9e3779b97f4a7c15u;
	word ^= word >> 29;
	word *= 0xbf58476d1ce4e5b9u;
	return word ^ word >> 32;
}

/* Names the message; the first 8 bytes of each that has any say whether it is the last. */
static uint64_t message_key(int sender, const struct channel *c, uint32_t seq)
{
	return mix((uint64_t)c->seed << 42 ^ (uint64_t)sender << 40 ^ (uint64_t)c->id << 32 ^ seq);
}

/* A quarter of the messages looks like NCCL's LL128: whole lines, whose last word is a flag. */
static bool is_flagged(uint64_t key)
{
	return key >> 62 == 0;
}

/* As many of each order of magnitude; each 16th is empty or of a size where the rules change. */
static size_t message_size(uint64_t key)
{
	static const size_t special[] = {0, 1, 16384, 16385, 65536, 128, 1 << 20, 131072};
	size_t size, bits = 0;

	size = special[key >> 4 & 7];
	if (key & 15) {
		while ((size_t)1 << bits < us.most)
			bits++;
		size = (size_t)1 << (key >> 8) % (bits + 1);
		size += (key >> 16) % size;
	}
	if (size > us.most)
		size = us.most;
	return is_flagged(key) ? size / LINE * LINE : size;
}

/* The 8 bytes from @at on of a message. */
static uint64_t message_word(uint64_t key, size_t at)
{
	if (is_flagged(key) && at % LINE == LINE - sizeof(key))
		return 1 + key % 4096;
	return (key + at) * 0x9e3779b97f4a7c15u;
}

static void message_make(uint64_t key, uint8_t *data, size_t size)
{
	uint64_t word;

	for (size_t i = 0; i < size; i += sizeof(word)) {
		word = message_word(key, i);
		memcpy(data + i, &word, size - i < sizeof(word) ? size - i : sizeof(word));
	}
}

static void message_check(const struct channel *c, uint32_t seq, const uint8_t *data, size_t size)
{
	uint64_t key = message_key(c->peer, c, seq), word;

	for (size_t i = 0; i < size; i += sizeof(word)) {
		word = message_word(key, i);
		if (memcmp(data + i, &word, size - i < sizeof(word) ? size - i : sizeof(word)))
			die("wrong byte: channel %d, message %u of %zu bytes, at %zu", c->id, seq,
			    size, i);
	}
}

static void poison_check(const struct channel *c, uint32_t seq, const uint8_t *data, size_t from,
			 const char *what)
{
	size_t i = from;

	if (!memcmp(data + from, us.poison, us.room - from))
		return;
	while (data[i] == POISON)
		i++;
	die("wrong byte: channel %d, message %u, %s, at %zu", c->id, seq, what, i);
}

static uint8_t *buffer_of(const struct side *side, uint32_t seq)
{
	return side->data + seq % BUFFERS * us.room;
}

/* ---- the stream ---------------------------------------------------------------------------- */

/* The last SLOTS messages have this size, which no other message has. */
#define LAST_BYTES 77

static size_t sent_size(const struct channel *c, uint32_t seq, uint64_t key)
{
	size_t size = message_size(key);

	if (c->send.total)
		return seq + SLOTS >= c->send.total ? LAST_BYTES : size;
	return size == LAST_BYTES ? LAST_BYTES + 1 : size;
}

static bool send_post(struct channel *c)
{
	struct side *side = &c->send;
	uint64_t key = message_key(us.rank, c, side->posted);
	uint8_t *data = buffer_of(side, side->posted);
	size_t size = sent_size(c, side->posted, key);
	void **request = &side->requests[side->posted % BUFFERS];

	if (side->posted - side->done == SLOTS || (side->total && side->posted == side->total))
		return false;
	if (!*request)
		message_make(key, data, size);
	if (us.fault && side->posted == 100 && size)
		data[size / 2] ^= 1;
	if (!TRY(c, us.net->isend(side->comm, data, size, 0, side->registration, NULL, request)))
		return false;
	side->posted += !!*request;
	return *request;
}

static bool receive_post(struct channel *c)
{
	struct side *side = &c->receive;
	void *data = buffer_of(side, side->posted), *profiler = NULL;
	void **request = &side->requests[side->posted % BUFFERS];
	size_t room = us.most;
	int tag = 0;

	if (side->posted - side->done == SLOTS || (side->total && side->posted == side->total))
		return false;
	poison_check(c, side->posted, data, 0, "in a buffer at rest");
	if (!TRY(c, us.net->irecv(side->comm, 1, &data, &room, &tag, &side->registration, &profiler,
				  request)))
		return false;
	side->posted += !!*request;
	return *request;
}

/* Only the oldest is tested, as NCCL does. */
static bool reap(struct channel *c, struct side *side, int *size)
{
	void **request = &side->requests[side->done % BUFFERS];
	int done = 0;

	if (side->done == side->posted)
		return false;
	if (!TRY(c, us.net->test(*request, &done, size)) || !done)
		return false;
	*request = NULL;
	side->done++;
	return true;
}

static bool receive_reap(struct channel *c)
{
	struct side *side = &c->receive;
	uint32_t seq = side->done;
	uint8_t *data = buffer_of(side, seq);
	int size = -1;

	if (!reap(c, side, &size))
		return false;
	if (size != LAST_BYTES && (size_t)size != message_size(message_key(c->peer, c, seq)) &&
	    size != LAST_BYTES + 1)
		die("channel %d: message %u has %d bytes", c->id, seq, size);
	message_check(c, seq, data, (size_t)size);
	poison_check(c, seq, data, (size_t)size, "behind it");
	memset(data, POISON, (size_t)size);
	if (size == LAST_BYTES && !side->total)
		side->total = seq + SLOTS;
	us.messages += !is_guests(c);
	us.visits += is_guests(c);
	us.bytes += (uint64_t)size;
	return true;
}

static bool channel_turn(struct channel *c, bool stop)
{
	int size;
	bool moved;

	if (stop && !c->send.total)
		c->send.total = c->send.posted + SLOTS;
	moved = receive_post(c);
	moved |= send_post(c);
	moved |= receive_reap(c);
	moved |= reap(c, &c->send, &size);
	return moved;
}

static bool channel_is_done(const struct channel *c)
{
	return c->send.total && c->send.done == c->send.total && c->receive.total &&
	       c->receive.done == c->receive.total;
}

/* ---- set-up -------------------------------------------------------------------------------- */

static void channel_listen(struct channel *c)
{
	uint8_t handle[NCCL_HANDLE_SIZE] = {0};
	char name[PATH_BYTES];

	CALL(us.net->listen(us.context, c->id % us.num_devices, handle, &c->listener));
	handle_name(name, c, us.rank);
	file_write(name, handle, sizeof(handle));
}

/* True once there are both comms. */
static bool channel_connects(struct channel *c)
{
	struct nccl_device_handle *device;
	int dev = c->id % us.num_devices;

	if (!c->send.comm)
		CALL(us.net->connect(us.context, dev, c->handle, &c->send.comm, &device));
	if (!c->receive.comm)
		CALL(us.net->accept(c->listener, &c->receive.comm, &device));
	return c->send.comm && c->receive.comm;
}

static void side_open(struct side *side)
{
	size_t size = BUFFERS * us.room;

	side->data = malloc(size);
	if (!side->data)
		die("out of memory");
	memset(side->data, POISON, size);
	CALL(us.net->reg_mr(side->comm, side->data, size, NCCL_POINTER_HOST, &side->registration));
}

static void channel_close(struct channel *c)
{
	CALL(us.net->dereg_mr(c->send.comm, c->send.registration));
	CALL(us.net->close_send(c->send.comm));
	CALL(us.net->dereg_mr(c->receive.comm, c->receive.registration));
	CALL(us.net->close_receive(c->receive.comm));
	free(c->send.data);
	free(c->receive.data);
}

/* Both comms are there. */
static void channel_begin(struct channel *c)
{
	CALL(us.net->close_listen(c->listener));
	side_open(&c->send);
	side_open(&c->receive);
}

static void channels_open(void)
{
	uint64_t deadline_ms = clock_ms() + CONNECT_S * 1000;

	for (int i = 0; i < us.num_channels; i++)
		channel_listen(&us.channels[i]);
	for (int i = 0; i < us.num_channels; i++) {
		handle_take(&us.channels[i], deadline_ms);
		while (!channel_connects(&us.channels[i])) {
			if (clock_ms() > deadline_ms)
				die("channel %d does not connect", i);
			pause_us(NAP_US);
		}
		channel_begin(&us.channels[i]);
	}
}

/* ---- guests -------------------------------------------------------------------------------- */

static void guest_await(int number)
{
	us.guest = number;
	us.guest_is_there = false;
	snprintf(us.guest_folder, sizeof(us.guest_folder), "%s/guest-%d", us.folder, number);
	memset(us.guests, 0, sizeof(us.guests));
	for (int i = 0; i < us.num_guests; i++) {
		us.guests[i].peer = GUEST;
		us.guests[i].id = us.rank * us.num_guests + i;
		us.guests[i].seed = us.seed + (uint32_t)number;
	}
}

/* Listens and connects as soon as the guest has left its last handle. */
static void guest_look(void)
{
	char name[PATH_BYTES];

	if (!us.num_guests || us.guest_is_there)
		return;
	handle_name(name, &us.guests[us.num_guests - 1], GUEST);
	if (access(name, F_OK))
		return;
	us.guest_is_there = true;
	for (int i = 0; i < us.num_guests; i++) {
		handle_take(&us.guests[i], clock_ms());
		channel_listen(&us.guests[i]);
	}
}

/*
 * One step of each comm with the guest; true if something has moved. What has failed is closed,
 * with its requests open, as NCCL does if it aborts.
 */
static bool guest_turn(bool stop)
{
	char name[PATH_BYTES];
	bool moved = false;
	int i, failed = 0;

	for (i = 0; us.guest_is_there && i < us.num_guests; i++) {
		struct channel *c = &us.guests[i];

		if (!c->send.data && !c->failed && channel_connects(c))
			channel_begin(c);
		if (c->send.data)
			moved |= channel_turn(c, stop);
		if (c->failed && c->send.data) {
			channel_close(c);
			c->send.data = NULL;
		}
		failed += c->failed;
	}
	if (us.num_guests && failed == us.num_guests) {
		snprintf(name, sizeof(name), "%s/closed-by-%d", us.guest_folder, us.rank);
		file_write(name, "\n", 1);
		guest_await(us.guest + 1);
	}
	return moved;
}

static bool guest_is_done(void)
{
	for (int i = 0; us.guest_is_there && i < us.num_guests; i++) {
		if (!channel_is_done(&us.guests[i]))
			return false;
	}
	return true;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void stream(uint64_t seconds)
{
	uint64_t began_ms = clock_ms(), moved_ms = began_ms, shown_ms = 0, now_ms;
	bool stop = false, moved, done = false;

	while (!done) {
		now_ms = clock_ms();
		if (now_ms >= shown_ms + PROGRESS_MS) {
			progress_write();
			descriptors_exhaust(us.folder, us.rank);
			guest_look();
			shown_ms = now_ms;
			stop |= seconds ? now_ms >= began_ms + seconds * 1000
					: is_there(us.folder, "stop");
		}
		moved = guest_turn(stop);
		done = guest_is_done();
		for (int i = 0; i < us.num_channels; i++) {
			moved |= channel_turn(&us.channels[i], stop);
			done &= channel_is_done(&us.channels[i]);
		}
		if (moved)
			moved_ms = now_ms;
		else
			poll_pause(moved_ms * NS_PER_MS);
	}
	progress_write();
}

static void arguments_read(char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	const char *guests = getenv("ALL_SIZES_GUESTS");

	us.net = library ? dlsym(library, NCCL_NET_SYMBOL_NEWEST) : NULL;
	if (!us.net)
		die("%s", dlerror());
	us.folder = argv[2];
	us.rank = atoi(argv[3]);
	us.num_channels = atoi(argv[4]) * (us.rank == GUEST ? 2 : 1);
	us.most = (size_t)atol(argv[6]);
	us.room = us.most + GUARD;
	us.poison = malloc(us.room);
	if (!us.poison)
		die("out of memory");
	memset(us.poison, POISON, us.room);
	us.seed = (uint32_t)atol(argv[7]);
	us.fault = getenv("ALL_SIZES_FAULT");
	us.num_guests = guests && us.rank != GUEST ? atoi(guests) : 0;
	if (us.num_channels < 1 || us.num_channels > CHANNELS_MAX || us.num_guests < 0 ||
	    us.num_guests > CHANNELS_MAX)
		die("1 to %d comms", CHANNELS_MAX);
	for (int i = 0; i < us.num_channels; i++) {
		us.channels[i].id = i;
		us.channels[i].seed = us.seed;
		us.channels[i].peer = us.rank == GUEST ? i / (us.num_channels / 2) : !us.rank;
	}
	guest_await(0);
}

int main(int argc, char **argv)
{
	struct nccl_comm_config config = {.traffic_class = NCCL_UNDEFINED};

	if (argc != 8)
		die("usage: all_sizes PLUGIN FOLDER RANK COMMS SECONDS MAX_BYTES SEED");
	arguments_read(argv);
	CALL(us.net->init(&us.context, 0x5175u, &config, log_line, NULL));
	CALL(us.net->devices(&us.num_devices));
	channels_open();
	stream((uint64_t)atol(argv[5]));
	for (int i = 0; i < us.num_channels; i++)
		channel_close(&us.channels[i]);
	for (int i = 0; us.guest_is_there && i < us.num_guests; i++)
		channel_close(&us.guests[i]);
	CALL(us.net->finalize(us.context));
	printf("rank %d: %" PRIu64 " messages, %" PRIu64 " bytes are right\n", us.rank, us.messages,
	       us.bytes);
	return 0;
}
