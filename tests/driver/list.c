/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - reads numbers of a command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"

/* Returns what follows the number, or NULL. */
static const char *number_read(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	errno = 0;
	*number = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		unsigned int shift = 10 * (unsigned int)(unit - units + 1);

		if (*number > UINT64_MAX >> shift)
			return NULL;
		*number <<= shift;
		end++;
	}
	return errno || *number < least || *number > most ? NULL : end;
}

size_t list_read(const char *text, uint64_t least, uint64_t most, uint64_t *numbers, size_t max)
{
	for (size_t num = 0; num < max; text++) {
		text = number_read(text, least, most, &numbers[num++]);
		if (!text || (*text && *text != ','))
			return 0;
		if (!*text)
			return num;
	}
	return 0;
}
