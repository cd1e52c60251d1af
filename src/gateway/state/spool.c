/* spool.c - usage that survives the gateway */
#include "gateway/state/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"

/* The file is mapped in segments, so that rows stay where they are when it grows. */
enum { SEGMENT_ROWS = 4096, SEGMENTS_MAX = 1024 };
#define SEGMENT_BYTES (SEGMENT_ROWS * sizeof(struct spool_row))

struct spool {
	int file;
	int64_t boot, last; /* the last number that was given */
	struct spool_row *segments[SEGMENTS_MAX];
	int segment_count;
	struct spool_row **spare; /* rows that are free */
	size_t spare_count, spare_capacity;
	size_t used;
	int64_t counted;  /* of this boot */
	bool has_earlier; /* rows of earlier boots are there */
};

static bool spool_fail(struct error *error, const char *path)
{
	return error_set(error, ERROR_UNAVAILABLE, "the spool %s cannot be used: %s", path,
	                 strerror(errno));
}

static bool add_segment(struct spool *spool)
{
	off_t at = (off_t)((size_t)spool->segment_count * SEGMENT_BYTES);
	struct stat status;

	if (spool->segment_count == SEGMENTS_MAX || fstat(spool->file, &status) != 0)
		return false;
	/* Not sparse: a full disk is an error here and no SIGBUS later. */
	if (status.st_size < at + (off_t)SEGMENT_BYTES &&
	    (errno = posix_fallocate(spool->file, at, (off_t)SEGMENT_BYTES)) != 0)
		return false;
	void *rows = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, spool->file, at);
	if (rows == MAP_FAILED)
		return false;
	spool->segments[spool->segment_count++] = rows;
	return true;
}

static void spare_add(struct spool *spool, struct spool_row *row)
{
	array_reserve(spool->spare, spool->spare_capacity, spool->spare_count + 1);
	spool->spare[spool->spare_count++] = row;
}

static void free_row(struct spool *spool, struct spool_row *row)
{
	atomic_store_explicit(&row->state, SPOOL_FREE, memory_order_release);
	spool->used--;
	spare_add(spool, row);
}

static struct spool_row *row_at(const struct spool *spool, size_t place)
{
	return &spool->segments[place / SEGMENT_ROWS][place % SEGMENT_ROWS];
}

static size_t row_count(const struct spool *spool)
{
	return (size_t)spool->segment_count * SEGMENT_ROWS;
}

static int32_t state_of(const struct spool_row *row)
{
	return atomic_load_explicit(&row->state, memory_order_acquire);
}

/* Those that were running when an earlier gateway ended are cut. They get numbers of this boot:
 * which of the earlier one were counted is not known here. */
static void recover(struct spool *spool)
{
	for (size_t i = 0; i < row_count(spool); i++) {
		struct spool_row *row = row_at(spool, i);
		int32_t state = state_of(row);
		if (state == SPOOL_RUNNING) {
			spool->used++;
			row->is_cut = 1;
			row->boot = spool->boot;
			spool_end(spool, row);
		} else if (state == SPOOL_ENDED) {
			row->key[SPOOL_TEXT_MAX - 1] = row->adapter[SPOOL_TEXT_MAX - 1] = '\0';
			spool->used++;
			spool->has_earlier = true;
		} else {
			spare_add(spool, row);
		}
	}
}

static bool spool_load(struct spool *spool, const char *path, struct error *error)
{
	struct stat status;

	spool->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (spool->file < 0)
		return spool_fail(error, path);
	if (flock(spool->file, LOCK_EX | LOCK_NB) != 0)
		return error_set(
		    error, ERROR_CONFLICT,
		    "the spool %s is in use: each gateway needs a state directory of its "
		    "own (--state)",
		    path);
	if (fstat(spool->file, &status) != 0)
		return spool_fail(error, path);
	size_t segments = ((size_t)status.st_size + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
	for (size_t i = 0; i < (segments > 0 ? segments : 1); i++)
		if (!add_segment(spool))
			return spool_fail(error, path);
	/* Above all that are there, even if the clock was set back. */
	for (size_t i = 0; i < row_count(spool); i++)
		if (state_of(row_at(spool, i)) != SPOOL_FREE)
			spool->boot = max64(spool->boot, row_at(spool, i)->boot + 1);
	recover(spool);
	return true;
}

struct spool *spool_open(const char *path, int64_t boot, struct error *error)
{
	struct spool *spool = NEW(struct spool);

	spool->boot = boot;
	spool->file = -1;
	if (spool_load(spool, path, error))
		return spool;
	spool_close(spool);
	return NULL;
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	for (int i = 0; i < spool->segment_count; i++)
		munmap(spool->segments[i], SEGMENT_BYTES);
	if (spool->file >= 0)
		close(spool->file);
	free(spool->spare);
	free(spool);
}

int64_t spool_boot(const struct spool *spool)
{
	return spool->boot;
}

static void copy_text(char *to, const char *from)
{
	size_t size = from ? strnlen(from, SPOOL_TEXT_MAX - 1) : 0;

	if (size > 0)
		memcpy(to, from, size);
	memset(to + size, 0, SPOOL_TEXT_MAX - size);
}

struct spool_row *spool_begin(struct spool *spool, int64_t tenant_id, int64_t model_id,
                              const char *key, const char *adapter)
{
	if (spool->spare_count == 0) {
		if (!add_segment(spool))
			panic("the spool of usage cannot grow: is the disk full?");
		for (size_t i = SEGMENT_ROWS; i > 0; i--)
			spare_add(spool, &spool->segments[spool->segment_count - 1][i - 1]);
	}
	struct spool_row *row = spool->spare[--spool->spare_count];
	row->boot = spool->boot;
	row->number = 0;
	row->tenant_id = tenant_id;
	row->model_id = model_id;
	row->prompt = row->cached = row->completion = 0;
	row->is_error = row->is_cut = 0;
	copy_text(row->key, key);
	copy_text(row->adapter, adapter);
	atomic_store_explicit(&row->state, SPOOL_RUNNING, memory_order_release);
	spool->used++;
	return row;
}

void spool_end(struct spool *spool, struct spool_row *row)
{
	row->number = ++spool->last;
	atomic_store_explicit(&row->state, SPOOL_ENDED, memory_order_release);
}

void spool_drop(struct spool *spool, struct spool_row *row)
{
	free_row(spool, row);
}

bool spool_next(const struct spool *spool, struct spool_range *range)
{
	if (!spool->has_earlier) {
		*range = (struct spool_range){ spool->boot, spool->counted + 1, spool->last };
		return range->to >= range->from;
	}
	*range = (struct spool_range){ .boot = INT64_MAX, .from = INT64_MAX };
	for (size_t i = 0; i < row_count(spool); i++) {
		const struct spool_row *row = row_at(spool, i);
		if (state_of(row) == SPOOL_ENDED)
			range->boot = min64(range->boot, row->boot);
	}
	for (size_t i = 0; i < row_count(spool); i++) {
		const struct spool_row *row = row_at(spool, i);
		if (state_of(row) != SPOOL_ENDED || row->boot != range->boot)
			continue;
		range->from = min64(range->from, row->number);
		range->to = max64(range->to, row->number);
	}
	return range->boot < INT64_MAX;
}

void spool_each(const struct spool *spool, const struct spool_range *range,
                void (*take)(void *context, const struct spool_row *row), void *context)
{
	for (size_t i = 0; i < row_count(spool); i++) {
		const struct spool_row *row = row_at(spool, i);
		if (state_of(row) == SPOOL_ENDED && row->boot == range->boot &&
		    row->number >= range->from && row->number <= range->to)
			take(context, row);
	}
}

void spool_counted(struct spool *spool, int64_t boot, int64_t to)
{
	bool has_earlier = false;

	if (boot == spool->boot)
		spool->counted = max64(spool->counted, min64(to, spool->last));
	for (size_t i = 0; i < row_count(spool); i++) {
		struct spool_row *row = row_at(spool, i);
		if (state_of(row) != SPOOL_ENDED)
			continue;
		if (row->boot == boot && row->number <= to)
			free_row(spool, row);
		else
			has_earlier = has_earlier || row->boot != spool->boot;
	}
	spool->has_earlier = has_earlier;
}

int spool_boots(const struct spool *spool, int64_t *boots, int most)
{
	int count = 0;

	for (size_t i = 0; i < row_count(spool); i++) {
		const struct spool_row *row = row_at(spool, i);
		int at = 0;
		if (state_of(row) != SPOOL_ENDED)
			continue;
		while (at < count && boots[at] != row->boot)
			at++;
		if (at == count && count < most)
			boots[count++] = row->boot;
	}
	return count;
}

size_t spool_used(const struct spool *spool)
{
	return spool->used;
}
