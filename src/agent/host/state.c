/* state.c - what the node's state machine wants kept: for good, and by one agent alone */
#include "agent/host/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "agent/host/file.h"
#include "base/map.h"
#include "base/memory.h"

#define JOURNAL_MAX ((size_t)1 << 30)
#define REWRITE_BYTES ((size_t)4 << 20) /* below that nothing is gained */

/* Before each value. Size ERASED: there is none under this key any more. */
struct head {
	uint32_t check; /* CRC-32 of the rest and of the value */
	uint32_t size;
	int64_t key;
};
#define ERASED UINT32_MAX

#define INSTANCE_SIZE 16

struct value {
	bool secret;
	size_t size;
	char data[];
};

struct state {
	char *directory;
	char instance[INSTANCE_SIZE];
	int lock, journal, lease;
	struct map values;
	struct buffer waiting; /* to be appended */
	size_t written;        /* to the journal */
	size_t live;           /* of that, what still counts */
	bool has_old_secrets;  /* in what does not */
};

static uint32_t check_of(const struct head *head, const void *data, size_t size)
{
	uLong check = crc32(0, (const Bytef *)&head->size, sizeof(*head) - sizeof(head->check));

	return (uint32_t)(size > 0 ? crc32(check, data, (uInt)size) : check);
}

static void state_forget(struct state *state, int64_t key)
{
	struct value *value = map_remove(&state->values, key);

	if (!value)
		return;
	state->live -= sizeof(struct head) + value->size;
	state->has_old_secrets = state->has_old_secrets || value->secret;
	explicit_bzero(value->data, value->size);
	free(value);
}

static void state_remember(struct state *state, int64_t key, const void *data, size_t size,
                           bool secret)
{
	struct value *value = memory_alloc(sizeof(*value) + size);

	state_forget(state, key);
	value->size = size;
	value->secret = secret;
	if (size > 0)
		memcpy(value->data, data, size);
	map_put(&state->values, key, value);
	state->live += sizeof(struct head) + size;
}

/* Takes what is whole, and cuts off the rest. Which of it is secret is not known any more. */
static bool read_journal(struct state *state, struct error *error)
{
	struct buffer bytes = { 0 };
	char *path = file_path("%s/journal", state->directory);
	bool read_well = file_read(path, JOURNAL_MAX, &bytes);
	size_t at = 0;
	struct head head;

	free(path);
	while (read_well && at + sizeof(head) <= bytes.size) {
		memcpy(&head, bytes.data + at, sizeof(head));
		size_t size = head.size == ERASED ? 0 : head.size;
		const char *data = bytes.data + at + sizeof(head);
		if (size > bytes.size - at - sizeof(head) ||
		    head.check != check_of(&head, data, size))
			break;
		if (head.size == ERASED)
			state_forget(state, head.key);
		else
			state_remember(state, head.key, data, size, true);
		at += sizeof(head) + size;
	}
	state->written = at;
	buffer_free(&bytes);
	if (!read_well || ftruncate(state->journal, (off_t)at) != 0)
		return error_set(error, ERROR_UNAVAILABLE, "cannot read the journal in %s: %s",
		                 state->directory, strerror(errno));
	return true;
}

static int open_in(const char *directory, const char *name, int flags)
{
	char *path = file_path("%s/%s", directory, name);
	int fd = open(path, flags | O_CLOEXEC, 0600);

	free(path);
	return fd;
}

static bool sync_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool synced = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return synced;
}

static bool take_lock(struct state *state, struct error *error)
{
	state->lock = open_in(state->directory, "lock", O_RDWR | O_CREAT);
	if (state->lock < 0)
		return error_set(error, ERROR_UNAVAILABLE, "cannot write in %s: %s",
		                 state->directory, strerror(errno));
	if (flock(state->lock, LOCK_EX | LOCK_NB) == 0)
		return true;
	return error_set(error, ERROR_CONFLICT,
	                 "another gpu-agent is running with the state directory %s",
	                 state->directory);
}

static bool make_directories(const struct state *state, struct error *error)
{
	static const char *const names[] = { "works", "output", "slots" };
	bool made = file_make_directories(state->directory, 0711, error);

	for (size_t i = 0; made && i < sizeof(names) / sizeof(*names); i++) {
		char *path = file_path("%s/%s", state->directory, names[i]);
		made = file_make_directories(path, 0700, error);
		free(path);
	}
	return made;
}

/* What is in the file, without the newline. False where there is none. */
static bool read_instance(struct state *state, const char *path)
{
	struct buffer text = { 0 };
	bool there = file_read(path, INSTANCE_SIZE, &text);

	if (there)
		snprintf(state->instance, sizeof(state->instance), "%.*s",
		         (int)strcspn(text.data, "\n"), text.data);
	buffer_free(&text);
	return there;
}

static bool make_instance(struct state *state, const char *path)
{
	char *new_path = file_path("%s.new", path);
	uint32_t number = 0;
	int fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	/* Its works, if it has any, are in cgroups that do not have it in their names. */
	if (state->written > 0)
		state->instance[0] = '\0';
	else if (getrandom(&number, sizeof(number), 0) == sizeof(number))
		snprintf(state->instance, sizeof(state->instance), "%08" PRIx32, number);
	bool made = fd >= 0 && dprintf(fd, "%s\n", state->instance) > 0 && fsync(fd) == 0 &&
	            rename(new_path, path) == 0 && sync_directory(state->directory);
	if (fd >= 0)
		close(fd);
	free(new_path);
	return made;
}

static bool name_instance(struct state *state, struct error *error)
{
	char *path = file_path("%s/instance", state->directory);
	bool named = read_instance(state, path) || make_instance(state, path);

	free(path);
	return named || error_set(error, ERROR_UNAVAILABLE, "cannot write in %s: %s",
	                          state->directory, strerror(errno));
}

struct state *state_open(const char *directory, struct error *error)
{
	struct state *state = NEW(struct state);

	state->lock = state->journal = state->lease = -1;
	state->directory = realpath(directory, NULL);
	if (!state->directory)
		state->directory = memory_text(directory);
	bool opened = make_directories(state, error) && take_lock(state, error);
	char *absolute = opened ? realpath(directory, NULL) : NULL;
	if (absolute) {
		free(state->directory);
		state->directory = absolute;
	}
	if (opened) {
		state->journal = open_in(state->directory, "journal", O_RDWR | O_CREAT | O_APPEND);
		state->lease = open_in(state->directory, "lease", O_RDWR | O_CREAT);
		if (state->journal < 0 || state->lease < 0 || !sync_directory(state->directory))
			opened = error_set(error, ERROR_UNAVAILABLE, "cannot write in %s: %s",
			                   state->directory, strerror(errno));
	}
	if (opened && read_journal(state, error) && name_instance(state, error))
		return state;
	state_close(state);
	return NULL;
}

void state_close(struct state *state)
{
	int files[] = { state->journal, state->lease, state->lock };

	for (size_t i = 0; i < 3; i++)
		if (files[i] >= 0)
			close(files[i]);
	for (size_t i = 0; i < state->values.capacity; i++)
		free(state->values.entries[i].value);
	map_free(&state->values);
	buffer_free(&state->waiting);
	free(state->directory);
	free(state);
}

bool state_each(const struct state *state,
                bool (*each)(void *context, int64_t key, const void *data, size_t size,
                             struct error *error),
                void *context, struct error *error)
{
	for (size_t i = 0; i < state->values.capacity; i++) {
		const struct value *value = state->values.entries[i].value;
		if (value &&
		    !each(context, state->values.entries[i].key, value->data, value->size, error))
			return false;
	}
	return true;
}

static void state_append(struct buffer *to, int64_t key, const void *data, size_t size, bool erased)
{
	struct head head = { .size = erased ? ERASED : (uint32_t)size, .key = key };

	INVARIANT(size < ERASED);
	head.check = check_of(&head, data, size);
	buffer_bytes(to, &head, sizeof(head));
	buffer_bytes(to, data, size);
}

void state_put(struct state *state, int64_t key, const void *data, size_t size, bool secret)
{
	state_append(&state->waiting, key, data, size, false);
	state_remember(state, key, data, size, secret);
}

void state_erase(struct state *state, int64_t key)
{
	if (!map_get(&state->values, key))
		return;
	state_append(&state->waiting, key, NULL, 0, true);
	state_forget(state, key);
}

static bool state_write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t done = write(fd, data, size);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		data += done;
		size -= (size_t)done;
	}
	return true;
}

/* The blocks of a file that has no name any more. */
static void overwrite(int fd, size_t size)
{
	static const char zeros[65536];

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_APPEND);
	for (size_t at = 0; at < size; at += sizeof(zeros)) {
		size_t piece = size - at < sizeof(zeros) ? size - at : sizeof(zeros);
		if (pwrite(fd, zeros, piece, (off_t)at) != (ssize_t)piece)
			return;
	}
	fdatasync(fd);
}

static bool rewrite(struct state *state)
{
	struct buffer all = { 0 };
	char *path = file_path("%s/journal", state->directory);
	char *new_path = file_path("%s/journal.new", state->directory);
	int fd = open(new_path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);

	for (size_t i = 0; i < state->values.capacity; i++) {
		const struct value *value = state->values.entries[i].value;
		if (value)
			state_append(&all, state->values.entries[i].key, value->data, value->size,
			             false);
	}
	bool done = fd >= 0 && state_write_all(fd, all.data, all.size) && fsync(fd) == 0 &&
	            rename(new_path, path) == 0 && sync_directory(state->directory);
	if (done) {
		if (state->has_old_secrets)
			overwrite(state->journal, state->written);
		close(state->journal);
		state->journal = fd;
		state->written = all.size;
		state->has_old_secrets = false;
		buffer_clear(&state->waiting);
	} else if (fd >= 0) {
		close(fd);
	}
	free(path);
	free(new_path);
	buffer_free(&all);
	return done;
}

bool state_sync(struct state *state, struct error *error)
{
	size_t size = state->waiting.size;
	bool done = true;

	if (size == 0)
		return true;
	if (state->written + size > REWRITE_BYTES && state->written + size > state->live * 4)
		done = rewrite(state);
	else
		done = state_write_all(state->journal, state->waiting.data, size) &&
		       fdatasync(state->journal) == 0;
	if (!done)
		return error_set(error, ERROR_UNAVAILABLE, "cannot write the journal in %s: %s",
		                 state->directory, strerror(errno));
	if (state->waiting.size > 0)
		state->written += size;
	buffer_clear(&state->waiting);
	return true;
}

bool state_wipe(struct state *state, struct error *error)
{
	if (!state->has_old_secrets || rewrite(state))
		return true;
	return error_set(error, ERROR_UNAVAILABLE, "cannot write the journal in %s: %s",
	                 state->directory, strerror(errno));
}

bool state_set_lease(struct state *state, int64_t until_ms)
{
	return pwrite(state->lease, &until_ms, sizeof(until_ms), 0) == sizeof(until_ms);
}

int64_t state_lease(const struct state *state)
{
	int64_t until_ms = 0;

	return pread(state->lease, &until_ms, sizeof(until_ms), 0) == sizeof(until_ms) ? until_ms
	                                                                               : 0;
}

const char *state_directory(const struct state *state)
{
	return state->directory;
}

const char *state_instance(const struct state *state)
{
	return state->instance;
}
