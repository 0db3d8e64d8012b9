/* SPDX-License-Identifier: Apache-2.0 */
/* conf_file.c - reads a configuration file, and replaces it as a whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "enable/enable.h"

/* A configuration file of a megabyte is a mistake. */
#define CONF_FILE_MAX ((off_t)1 << 20)
#define NEW_FILE_MODE 0644

/* ---- reading ----------------------------------------------------------------------------- */

/* Writes the path behind all links; a file that does not exist yet has its folder's real path. */
static int path_resolve(const char *path, struct conf_file *file)
{
	char folder[PATH_MAX], real[PATH_MAX];
	struct stat info;
	const char *slash;

	file->exists = realpath(path, file->path) != NULL;
	if (file->exists)
		return 0;
	if (errno != ENOENT || !lstat(path, &info))
		return -errno; /* ENOENT with a link: it dangles */
	slash = strrchr(path, '/');
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path + 1) : 1,
		 slash ? path : ".");
	if (!realpath(folder, real))
		return -errno;
	return snprintf(file->path, sizeof(file->path), "%s/%s", strcmp(real, "/") ? real : "",
			slash ? slash + 1 : path) < (int)sizeof(file->path)
		       ? 0
		       : -ENAMETOOLONG;
}

/* Reads what @fd has, which is a regular file of file->info. */
static int bytes_read(int fd, struct conf_file *file)
{
	size_t size = (size_t)file->info.st_size, len = 0;
	ssize_t n = 1;

	file->text.bytes = malloc(size + 1);
	if (!file->text.bytes)
		return -ENOMEM;
	while (len < size && n) {
		n = read(fd, file->text.bytes + len, size - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	file->text.bytes[len] = '\0';
	file->text.size = len;
	return len == size ? 0 : -EBUSY;
}

static int file_take(struct conf_file *file)
{
	/* O_NONBLOCK: a FIFO in this place must not block this program. */
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &file->info))
		ret = -errno;
	else if (!S_ISREG(file->info.st_mode))
		ret = -EINVAL;
	else if (file->info.st_size > CONF_FILE_MAX)
		ret = -EFBIG;
	else
		ret = bytes_read(fd, file);
	close(fd);
	return ret;
}

int conf_file_read(const char *path, struct conf_file *file)
{
	int ret;

	memset(file, 0, sizeof(*file));
	ret = path_resolve(path, file);
	if (ret)
		return ret;
	if (file->exists)
		ret = file_take(file);
	else if (!(file->text.bytes = calloc(1, 1)))
		ret = -ENOMEM;
	if (ret)
		conf_file_free(file);
	return ret;
}

void conf_file_free(struct conf_file *file)
{
	free(file->text.bytes);
	file->text.bytes = NULL;
}

/* ---- writing ----------------------------------------------------------------------------- */

/* Returns 0 if the file is still what was read, and this user may write it. */
static int unchanged(const struct conf_file *file)
{
	struct stat info;

	if (lstat(file->path, &info))
		return errno == ENOENT && !file->exists ? 0 : -EBUSY;
	if (!file->exists || info.st_ino != file->info.st_ino || info.st_dev != file->info.st_dev ||
	    info.st_size != file->info.st_size ||
	    info.st_mtim.tv_sec != file->info.st_mtim.tv_sec ||
	    info.st_mtim.tv_nsec != file->info.st_mtim.tv_nsec)
		return -EBUSY;
	/* A rename needs no right to write the file, but a read-only file is to stay as it is. */
	return access(file->path, W_OK) ? -errno : 0;
}

static int owner_copy(const struct conf_file *file, int fd)
{
	struct stat info;

	if (!file->exists)
		return fchmod(fd, NEW_FILE_MODE) ? -errno : 0;
	if (fstat(fd, &info))
		return -errno;
	/* Before the mode, because it clears the bits for set-user-ID. */
	if ((info.st_uid != file->info.st_uid || info.st_gid != file->info.st_gid) &&
	    fchown(fd, file->info.st_uid, file->info.st_gid))
		return -errno;
	return fchmod(fd, file->info.st_mode & 07777) ? -errno : 0;
}

static int new_file_fill(const struct conf_file *file, int fd, const struct conf_text *text)
{
	FILE *stream = fdopen(fd, "w");
	int ret;

	if (!stream) {
		ret = -errno;
		close(fd);
		return ret;
	}
	fwrite(text->bytes, 1, text->size, stream);
	ret = owner_copy(file, fd);
	if (!ret && (fflush(stream) || fsync(fd)))
		ret = -errno;
	return file_close(stream) && !ret ? -EIO : ret;
}

/* Makes the rename or removal survive a power failure, if the file system supports that. */
static void folder_sync(const char *path)
{
	char folder[PATH_MAX];
	int fd;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path + 1), path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

int conf_file_replace(const struct conf_file *file, const struct conf_text *text)
{
	char path[PATH_MAX + 16];
	int fd, ret = unchanged(file);

	if (ret)
		return ret;
	snprintf(path, sizeof(path), "%s.XXXXXX", file->path);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = new_file_fill(file, fd, text);
	if (!ret)
		ret = unchanged(file);
	if (!ret && rename(path, file->path))
		ret = -errno;
	if (ret)
		unlink(path);
	else
		folder_sync(file->path);
	return ret;
}

int conf_file_remove(const struct conf_file *file)
{
	int ret = unchanged(file);

	if (!ret && unlink(file->path))
		ret = -errno;
	if (!ret)
		folder_sync(file->path);
	return ret;
}
