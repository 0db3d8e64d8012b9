/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_conf_block.c - `fi_mesh enable` and `disable` on any file: what is not theirs stays. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "enable/enable.h"

#include "fuzz_text.h"

static const struct conf_value values[] = {
	{CONF_NEEDED, "NCCL_NET_PLUGIN", "mesh", false},
	{CONF_OPTIONAL, "NCCL_NET_PLUGIN_REF_COUNT", "1", false},
	{CONF_WATCHED, "NCCL_NET", "Mesh", true},
	{CONF_OPTIONAL, "NCCL_SOCKET_IFNAME", "=eno1", false},
};

static bool is_same(const struct conf_text *a, const struct conf_text *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static void refused(int ret, const struct conf_obstacle *obstacle)
{
	fuzz_check(ret == -EBADMSG || ret == -EEXIST);
	fuzz_check(obstacle->line > 0);
	fuzz_text_printable(obstacle->text, sizeof(obstacle->text));
}

/* Returns false if the text is refused. */
static bool put(const struct conf_text *old, bool is_new, struct conf_text *made)
{
	struct conf_obstacle obstacle = {0};
	int ret = conf_block_put(old, is_new, values, sizeof(values) / sizeof(values[0]), made,
				 &obstacle);

	if (ret)
		refused(ret, &obstacle);
	else
		fuzz_check(!made->bytes[made->size]);
	return !ret;
}

/* What is left without the block; a copy of @old if it has none. Returns false if it is refused. */
static bool take(const struct conf_text *old, struct conf_text *made, bool *had, bool *unmake)
{
	struct conf_obstacle obstacle = {0};
	int ret = conf_block_remove(old, made, unmake, &obstacle);

	*had = ret == 1;
	if (ret < 0)
		refused(ret, &obstacle);
	else if (!ret)
		*made = (struct conf_text){fuzz_text((const uint8_t *)old->bytes, old->size),
					   old->size};
	return ret >= 0;
}

/* What NCCL reads is in force. A text with zeros ends for NCCL before the block. */
static void with_use(const struct conf_text *with)
{
	char value[NCCL_CONF_VALUE_MAX + 1] = "";

	if (memchr(with->bytes, 0, with->size))
		return;
	fuzz_check(nccl_conf_find(with->bytes, "NCCL_NET_PLUGIN", value, sizeof(value)));
	fuzz_check(!strcmp(value, "mesh"));
}

/* A line that the user has added behind the block stays a line. */
static void line_add(const struct conf_text *with, const struct conf_text *without)
{
	static const char line[] = "NCCL_DEBUG=INFO";
	const size_t len = sizeof(line) - 1, size = without->size;
	struct conf_text longer = {malloc(with->size + len), with->size + len}, back;
	bool had, unmake;

	memcpy(longer.bytes, with->bytes, with->size);
	memcpy(longer.bytes + with->size, line, len);
	fuzz_check(take(&longer, &back, &had, &unmake) && had && !unmake);
	fuzz_check(back.size >= size + len && !memcmp(back.bytes, without->bytes, size));
	fuzz_check(!memcmp(back.bytes + back.size - len, line, len) &&
		   (back.size == len || back.bytes[back.size - len - 1] == '\n'));
	free(back.bytes);
	free(longer.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_text old = {fuzz_text(data, size), size}, without, with, again, back;
	bool had, had_again, unmake, is_new = !size;

	if (!old.bytes || !take(&old, &without, &had, &unmake))
		goto free_old;
	/* Nothing of ours is left, and without a block nothing has changed. */
	fuzz_check(take(&without, &again, &had_again, &unmake) && !had_again);
	free(again.bytes);
	if (!put(&old, is_new, &with))
		goto free_without;
	with_use(&with);
	fuzz_check(put(&with, false, &again) && is_same(&again, &with));
	fuzz_check(take(&with, &back, &had, &unmake) && had && is_same(&back, &without));
	fuzz_check(!is_new || unmake);
	line_add(&with, &without);
	free(back.bytes);
	free(again.bytes);
	free(with.bytes);
free_without:
	free(without.bytes);
free_old:
	free(old.bytes);
	return 0;
}
