/* journal.c - the commands as they were applied, for diagnosis and replay */
#include "store/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

static const char title[] = "gpu-scheduler journal 3\n";
#define TITLE_SIZE (sizeof(title) - 1)

enum { COUNT_AT = 4, NUMBER_AT = 8, SUM_AT = 16, FRAME_HEAD = 24, FILES = 8 };
#define FILE_BYTES (INT64_C(64) << 20)

struct journal {
	struct journal_options options;
	int file; /* -1: the next append begins a new one */
	int64_t written;
	struct buffer frame;
};

struct journal *journal_new(const struct journal_options *options)
{
	struct journal *journal = NEW(struct journal);
	journal->options = *options;
	journal->options.directory = memory_text(options->directory);
	if (journal->options.file_bytes == 0)
		journal->options.file_bytes = FILE_BYTES;
	if (journal->options.files == 0)
		journal->options.files = FILES;
	journal->file = -1;
	return journal;
}

void journal_free(struct journal *journal)
{
	if (!journal)
		return;
	if (journal->file >= 0)
		close(journal->file);
	free((char *)journal->options.directory);
	buffer_free(&journal->frame);
	free(journal);
}

/* Of a frame: its first numbers, and its payload. */
static uint64_t checksum(const uint8_t *head, const uint8_t *payload, size_t size)
{
	return hash_combine(hash_bytes(head, SUM_AT), hash_bytes(payload, size));
}

static void put_little(char *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (char)(value >> (8 * i));
}

static uint64_t get_little(const uint8_t *at, int bytes)
{
	uint64_t value = 0;
	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

/* The numbers in the names of the files of a directory, sorted. */
struct listing {
	int64_t *numbers;
	size_t count, capacity;
};

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static bool list_files(const char *directory, struct listing *listing, struct error *error)
{
	DIR *open_directory = opendir(directory);
	if (!open_directory)
		return error_set(error, ERROR_NOT_FOUND, "%s: %s", directory, strerror(errno));
	struct dirent *entry;
	while ((entry = readdir(open_directory))) { /* NOLINT(concurrency-mt-unsafe) */
		int64_t number;
		int length = 0;
		if (sscanf(entry->d_name, "journal-%20" SCNd64 "%n", &number, &length) != 1 ||
		    entry->d_name[length] != '\0')
			continue;
		array_reserve(listing->numbers, listing->capacity, listing->count + 1);
		listing->numbers[listing->count++] = number;
	}
	closedir(open_directory);
	if (listing->count > 1)
		qsort(listing->numbers, listing->count, sizeof(*listing->numbers), by_number);
	return true;
}

static void name_file(struct buffer *path, const char *directory, int64_t number)
{
	buffer_print(path, "%s/journal-%020" PRId64, directory, number);
}

static void delete_oldest(const struct journal *journal)
{
	struct listing listing = { 0 };
	struct error ignored;
	size_t keep = (size_t)journal->options.files;
	if (list_files(journal->options.directory, &listing, &ignored)) {
		for (size_t i = 0; i + keep < listing.count; i++) {
			struct buffer path = { 0 };
			name_file(&path, journal->options.directory, listing.numbers[i]);
			unlink(path.data);
			buffer_free(&path);
		}
	}
	free(listing.numbers);
}

static bool journal_write_all(int file, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t count = write(file, data, size);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		data += count;
		size -= (size_t)count;
	}
	return true;
}

static bool begin_file(struct journal *journal, int64_t first, struct error *error)
{
	struct buffer path = { 0 };
	mkdir(journal->options.directory, 0700);
	name_file(&path, journal->options.directory, first);
	int file = open(path.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool begun = file >= 0 && journal_write_all(file, title, TITLE_SIZE);
	if (!begun)
		error_set(error, ERROR_UNAVAILABLE, "%s: %s", path.data, strerror(errno));
	if (!begun && file >= 0)
		close(file);
	buffer_free(&path);
	if (!begun)
		return false;
	journal->file = file;
	journal->written = (int64_t)TITLE_SIZE;
	delete_oldest(journal);
	return true;
}

static void end_file(struct journal *journal)
{
	close(journal->file);
	journal->file = -1;
}

bool journal_append(struct journal *journal, int64_t first, int64_t count,
                    const struct buffer *commands, struct error *error)
{
	struct buffer *frame = &journal->frame;
	if (count == 0)
		return true;
	if (journal->file < 0 && !begin_file(journal, first, error))
		return false;
	char head[FRAME_HEAD] = { 0 };
	buffer_clear(frame);
	put_little(head, commands->size, 4);
	put_little(head + COUNT_AT, (uint64_t)count, 4);
	put_little(head + NUMBER_AT, (uint64_t)first, 8);
	uint64_t sum = checksum((uint8_t *)head, (uint8_t *)commands->data, commands->size);
	put_little(head + SUM_AT, sum, 8);
	buffer_bytes(frame, head, sizeof(head));
	buffer_bytes(frame, commands->data, commands->size);
	if (!journal_write_all(journal->file, frame->data, frame->size)) {
		error_set(error, ERROR_UNAVAILABLE, "%s: %s", journal->options.directory,
		          strerror(errno));
		end_file(journal);
		return false;
	}
	journal->written += (int64_t)frame->size;
	if (journal->written >= journal->options.file_bytes)
		end_file(journal);
	return true;
}

/* Where reading is: `next` is the number of the command that should come. */
struct reading {
	const uint8_t *at, *end;
	int64_t *next;
	journal_command each;
	void *context;
	struct arena arena;
	struct error *error;
};

static bool read_size(struct reading *reading, const uint8_t *end, size_t *size)
{
	*size = 0;
	for (unsigned shift = 0; shift < 35 && reading->at < end; shift += 7) {
		uint8_t byte = *reading->at++;
		*size |= (size_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return *size <= (size_t)(end - reading->at);
	}
	return false;
}

/* The commands of one frame whose checksum is right. Those before `next` were
 * read before, or are not wanted. */
static bool read_commands(struct reading *reading, const uint8_t *end, int64_t number,
                          int64_t count)
{
	for (int64_t i = 0; i < count; i++, number++) {
		size_t size;
		if (!read_size(reading, end, &size))
			return error_set(reading->error, ERROR_CORRUPT,
			                 "command %lld has a size that cannot be",
			                 (long long)number);
		const uint8_t *at = reading->at;
		reading->at += size;
		if (number < *reading->next)
			continue;
		arena_reset(&reading->arena);
		struct command *command =
		    command_decode(&reading->arena, &at, reading->at, reading->error);
		if (!command || !reading->each(reading->context, number, command, reading->error))
			return false;
		*reading->next = number + 1;
	}
	return true;
}

static bool read_frames(struct reading *reading, int64_t *missing)
{
	while (reading->end - reading->at >= FRAME_HEAD) {
		const uint8_t *head = reading->at;
		uint64_t size = get_little(head, 4);
		if (size > (uint64_t)(reading->end - head) - FRAME_HEAD ||
		    get_little(head + SUM_AT, 8) != checksum(head, head + FRAME_HEAD, size))
			return true; /* torn: nothing behind it can be trusted */
		int64_t number = (int64_t)get_little(head + NUMBER_AT, 8);
		int64_t count = (int64_t)get_little(head + COUNT_AT, 4);
		if (number < 0 || number > INT64_MAX / 2)
			return true;
		if (missing && number > *reading->next)
			*missing += number - *reading->next;
		if (number > *reading->next)
			*reading->next = number;
		reading->at = head + FRAME_HEAD;
		if (!read_commands(reading, head + FRAME_HEAD + size, number, count))
			return false;
		reading->at = head + FRAME_HEAD + size;
	}
	return true;
}

bool journal_read_bytes(const uint8_t *data, size_t size, int64_t *next, journal_command each,
                        void *context, int64_t *missing, struct error *error)
{
	struct reading reading = { .at = data + TITLE_SIZE,
		                   .end = data + size,
		                   .next = next,
		                   .each = each,
		                   .context = context,
		                   .error = error };
	if (size < TITLE_SIZE)
		return true; /* begun when the machine stopped */
	if (memcmp(data, title, TITLE_SIZE) != 0)
		return error_set(error, ERROR_INVALID, "this is not a journal of this version");
	bool done = read_frames(&reading, missing);
	arena_free(&reading.arena);
	return done;
}

static bool journal_read_file(const char *path, struct buffer *content, struct error *error)
{
	char piece[65536];
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = -1;
	while (file >= 0 && (count = read(file, piece, sizeof(piece))) > 0)
		buffer_bytes(content, piece, (size_t)count);
	if (count != 0)
		error_set(error, ERROR_UNAVAILABLE, "%s: %s", path, strerror(errno));
	if (file >= 0)
		close(file);
	return count == 0;
}

bool journal_read(const char *directory, int64_t after, journal_command each, void *context,
                  int64_t *missing, struct error *error)
{
	struct listing listing = { 0 };
	struct buffer content = { 0 };
	int64_t next = after + 1;
	bool done = list_files(directory, &listing, error);

	if (missing)
		*missing = 0;
	for (size_t i = 0; done && i < listing.count; i++) {
		struct buffer path = { 0 };
		name_file(&path, directory, listing.numbers[i]);
		buffer_clear(&content);
		done = journal_read_file(path.data, &content, error) &&
		       journal_read_bytes((uint8_t *)content.data, content.size, &next, each,
		                          context, missing, error);
		buffer_free(&path);
	}
	free(listing.numbers);
	buffer_free(&content);
	return done;
}
