/* faulty.c - a file system and an allocator for SQLite that fail when they are told to */
#include "store/test/faulty.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"

/* A write or truncation that was not synced yet, and what was there before. */
struct undo {
	char path[512];
	sqlite3_int64 offset, size_before;
	int size; /* of `before`, which may be less than was written */
	char *before;
};

static struct {
	enum fault fault;
	int64_t countdown, times;
	bool happened, frozen;
	struct undo *undos;
	size_t undo_count, undo_capacity;
	sqlite3_vfs vfs, *real;
	sqlite3_mem_methods memory;
} faulty;

/* Our file: the real one lies behind it. */
struct faulty_file {
	sqlite3_file base;
	char path[512];
	bool is_tracked;
};

static sqlite3_file *real_of(sqlite3_file *file)
{
	return (sqlite3_file *)(void *)((char *)file + sizeof(struct faulty_file));
}

void faulty_arm(enum fault fault, int64_t nth, int64_t times)
{
	faulty.fault = fault;
	faulty.countdown = nth;
	faulty.times = times;
	faulty.happened = false;
}

bool faulty_disarm(void)
{
	faulty.fault = FAULT_NONE;
	return faulty.happened;
}

static bool fails(enum fault fault)
{
	if (faulty.fault != fault || --faulty.countdown > 0)
		return false;
	if (-faulty.countdown >= faulty.times)
		return false;
	faulty.happened = true;
	return true;
}

static void faulty_remember(struct faulty_file *self, sqlite3_int64 offset, int size)
{
	if (!self->is_tracked)
		return;
	array_reserve(faulty.undos, faulty.undo_capacity, faulty.undo_count + 1);
	struct undo *undo = &faulty.undos[faulty.undo_count++];
	*undo = (struct undo){ .offset = offset };
	memcpy(undo->path, self->path, sizeof(undo->path));
	real_of(&self->base)->pMethods->xFileSize(real_of(&self->base), &undo->size_before);
	if (offset + size > undo->size_before)
		size = offset < undo->size_before ? (int)(undo->size_before - offset) : 0;
	undo->size = size;
	undo->before = memory_alloc((size_t)size + 1);
	if (size > 0)
		real_of(&self->base)
		    ->pMethods->xRead(real_of(&self->base), undo->before, size, offset);
}

/* What was written to this file is safe now. */
static void faulty_settle(const char *path)
{
	size_t kept = 0;
	for (size_t i = 0; i < faulty.undo_count; i++) {
		if (strcmp(faulty.undos[i].path, path) == 0)
			free(faulty.undos[i].before);
		else
			faulty.undos[kept++] = faulty.undos[i];
	}
	faulty.undo_count = kept;
}

static int file_close(sqlite3_file *file)
{
	return real_of(file)->pMethods->xClose(real_of(file));
}

static int file_read(sqlite3_file *file, void *data, int size, sqlite3_int64 offset)
{
	return real_of(file)->pMethods->xRead(real_of(file), data, size, offset);
}

static int file_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
	struct faulty_file *self = (struct faulty_file *)(void *)file;
	if (faulty.frozen)
		return SQLITE_IOERR_WRITE;
	faulty_remember(self, offset, size);
	if (fails(FAULT_FULL))
		return SQLITE_FULL;
	if (fails(FAULT_WRITE)) {
		real_of(file)->pMethods->xWrite(real_of(file), data, size / 2, offset);
		return SQLITE_IOERR_WRITE;
	}
	return real_of(file)->pMethods->xWrite(real_of(file), data, size, offset);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct faulty_file *self = (struct faulty_file *)(void *)file;
	sqlite3_int64 before = 0;
	if (faulty.frozen)
		return SQLITE_IOERR_TRUNCATE;
	real_of(file)->pMethods->xFileSize(real_of(file), &before);
	if (before > size)
		faulty_remember(self, size, (int)(before - size));
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int file_sync(sqlite3_file *file, int flags)
{
	struct faulty_file *self = (struct faulty_file *)(void *)file;
	(void)flags;
	if (faulty.frozen || fails(FAULT_SYNC))
		return SQLITE_IOERR_FSYNC;
	faulty_settle(self->path);
	return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int file_lock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int file_reserved(sqlite3_file *file, int *result)
{
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), result);
}

static int file_control(sqlite3_file *file, int operation, void *argument)
{
	return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int file_sector(sqlite3_file *file)
{
	(void)file;
	return 512;
}

/* Promises nothing that a file system might not keep. */
static int file_traits(sqlite3_file *file)
{
	(void)file;
	return 0;
}

static int file_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **at)
{
	return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, at);
}

static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
	return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
	real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int file_shm_unmap(sqlite3_file *file, int remove)
{
	return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_unlock,
	.xCheckReservedLock = file_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
	.xShmMap = file_shm_map,
	.xShmLock = file_shm_lock,
	.xShmBarrier = file_shm_barrier,
	.xShmUnmap = file_shm_unmap,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given)
{
	struct faulty_file *self = (struct faulty_file *)(void *)file;
	(void)vfs;
	memset(self, 0, sizeof(*self));
	snprintf(self->path, sizeof(self->path), "%s", name ? name : "");
	self->is_tracked =
	    name && (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL));
	int code = faulty.real->xOpen(faulty.real, name, real_of(file), flags, given);
	if (code == SQLITE_OK)
		file->pMethods = &methods;
	return code;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	if (faulty.frozen)
		return SQLITE_IOERR_DELETE;
	faulty_settle(name);
	return faulty.real->xDelete(faulty.real, name, sync);
}

static void *memory_allocate(int size)
{
	return fails(FAULT_MEMORY) ? NULL : faulty.memory.xMalloc(size);
}

static void *memory_reallocate(void *old, int size)
{
	return fails(FAULT_MEMORY) ? NULL : faulty.memory.xRealloc(old, size);
}

void faulty_install(void)
{
	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &faulty.memory);
	sqlite3_mem_methods memory = faulty.memory;
	memory.xMalloc = memory_allocate;
	memory.xRealloc = memory_reallocate;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
	faulty.real = sqlite3_vfs_find(NULL);
	faulty.vfs = *faulty.real;
	faulty.vfs.zName = FAULTY_VFS;
	faulty.vfs.szOsFile = (int)sizeof(struct faulty_file) + faulty.real->szOsFile;
	faulty.vfs.xOpen = vfs_open;
	faulty.vfs.xDelete = vfs_delete;
	sqlite3_vfs_register(&faulty.vfs, 0);
}

void faulty_freeze(void)
{
	faulty.frozen = true;
}

static void undo_one(const struct undo *undo)
{
	int file = open(undo->path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return;
	if (pwrite(file, undo->before, (size_t)undo->size, undo->offset) != undo->size ||
	    (undo->offset + undo->size >= undo->size_before &&
	     ftruncate(file, undo->size_before) != 0))
		panic("%s cannot be put back", undo->path);
	close(file);
}

void faulty_power_loss(uint64_t seed)
{
	for (size_t i = faulty.undo_count; i > 0; i--) {
		if (random_below(&seed, 2) == 0)
			undo_one(&faulty.undos[i - 1]);
		free(faulty.undos[i - 1].before);
	}
	faulty.undo_count = 0;
	faulty.frozen = false;
}
