/* lease_keys.c - the keys of leases on a slot: the agent writes them, the slot's proxy reads them
 */
#include "agent/host/lease_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

int lease_keys_make(const char *path, struct error *error)
{
	unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* All of it now: a page that cannot be had later would end who writes to it. */
	int reason = fd < 0 ? errno : posix_fallocate(fd, 0, sizeof(struct lease_keys));

	if (fd >= 0)
		close(fd);
	fd = reason == 0 ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (fd < 0)
		error_set(error, ERROR_UNAVAILABLE, "cannot make %s: %s", path,
		          strerror(reason ? reason : errno));
	return fd;
}

static void *map_file(int fd, int protection)
{
	struct stat about;

	if (fstat(fd, &about) != 0 || about.st_size != sizeof(struct lease_keys))
		return NULL;
	void *mapped = mmap(NULL, sizeof(struct lease_keys), protection, MAP_SHARED, fd, 0);
	return mapped == MAP_FAILED ? NULL : mapped;
}

const struct lease_keys *lease_keys_map(int fd)
{
	return map_file(fd, PROT_READ);
}

struct lease_keys *lease_keys_open(const char *path)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct lease_keys *keys = fd >= 0 ? map_file(fd, PROT_READ | PROT_WRITE) : NULL;

	if (fd >= 0)
		close(fd);
	return keys;
}

void lease_keys_close(struct lease_keys *keys)
{
	munmap(keys, sizeof(*keys));
}

/* Entries in use; a damaged file has no more than there is room for. */
static int64_t count_used(const struct lease_keys *keys)
{
	int64_t used = atomic_load_explicit(&keys->used, memory_order_acquire);

	return used < 0 ? 0 : used < LEASE_KEYS_MAX ? used : LEASE_KEYS_MAX;
}

static struct lease_key *find_entry(struct lease_keys *keys, int64_t lease_id)
{
	int64_t used = count_used(keys);

	for (int64_t i = 0; i < used; i++)
		if (keys->at[i].lease_id == lease_id && atomic_load(&keys->at[i].until_ms) != 0)
			return &keys->at[i];
	return NULL;
}

/* NULL: all hold. */
static struct lease_key *free_entry(struct lease_keys *keys)
{
	int64_t used = count_used(keys), now_ms = clock_boot_ms();

	for (int64_t i = 0; i < used; i++)
		if (atomic_load(&keys->at[i].until_ms) <= now_ms)
			return &keys->at[i];
	return used < LEASE_KEYS_MAX ? &keys->at[used] : NULL;
}

bool lease_keys_put(struct lease_keys *keys, int64_t lease_id, struct text key, int64_t until_ms)
{
	struct lease_key *entry = find_entry(keys, lease_id);

	if (until_ms <= 0 || key.size != SLOT_KEY_SIZE)
		return false;
	if (!entry || memcmp(entry->key, key.data, SLOT_KEY_SIZE) != 0) {
		entry = entry ? entry : free_entry(keys);
		if (!entry)
			return false;
		atomic_store(&entry->until_ms, 0);
		entry->lease_id = lease_id;
		memcpy(entry->key, key.data, SLOT_KEY_SIZE);
	}
	atomic_store(&entry->until_ms, until_ms);
	if (entry - keys->at >= count_used(keys))
		atomic_store(&keys->used, entry - keys->at + 1);
	return true;
}

static void end_entry(struct lease_key *entry)
{
	atomic_store(&entry->until_ms, 0);
	explicit_bzero(entry->key, sizeof(entry->key));
}

void lease_keys_end(struct lease_keys *keys, int64_t lease_id)
{
	struct lease_key *entry = find_entry(keys, lease_id);

	if (entry)
		end_entry(entry);
}

void lease_keys_end_others(struct lease_keys *keys,
                           bool (*is_kept)(const void *context, int64_t lease_id),
                           const void *context)
{
	int64_t used = count_used(keys);

	for (int64_t i = 0; i < used; i++)
		if (atomic_load(&keys->at[i].until_ms) != 0 &&
		    !is_kept(context, keys->at[i].lease_id))
			end_entry(&keys->at[i]);
}

bool lease_keys_admit(const struct lease_keys *keys, struct text given, int64_t now_ms)
{
	int64_t used = given.size == SLOT_KEY_SIZE ? count_used(keys) : 0;

	for (int64_t i = 0; i < used; i++) {
		const struct lease_key *entry = &keys->at[i];
		volatile unsigned char difference = 0;
		if (atomic_load(&entry->until_ms) <= now_ms)
			continue;
		for (size_t j = 0; j < SLOT_KEY_SIZE; j++)
			difference |= (unsigned char)(entry->key[j] ^ given.data[j]);
		/* Read once more: the entry may have been given to another lease meanwhile. */
		if (difference == 0 && atomic_load(&entry->until_ms) > now_ms)
			return true;
	}
	return false;
}
