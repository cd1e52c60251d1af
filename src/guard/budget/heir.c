/* heir.c - processes that keep the memory of another, because they inherited its descriptors */
#include "guard/budget/heir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/budget/process.h"
#include "guard/budget/system.h"

const char *heir_files = "/dev/nvidia";

void heir_add(struct segment *segment, uint64_t heir, uint64_t of)
{
	for (int i = 0; i < SEGMENT_HEIRS_MAX; i++) {
		struct segment_heir *place = &segment->heirs[i];
		uint64_t owner = atomic_load(&place->owner);
		if ((owner != 0 && !process_is_gone(owner)) ||
		    !atomic_compare_exchange_strong(&place->owner, &owner, heir))
			continue;
		atomic_store(&place->of, of);
		return;
	}
}

/* As the kernel writes it. */
struct entry {
	uint64_t number;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* Puts the number of a process, or of nothing, between two texts. */
static size_t put_path(char *path, int64_t pid, const char *after)
{
	char digits[24];
	int count = 0;
	size_t size = 6;
	memcpy(path, "/proc/", size);
	for (; pid > 0; pid /= 10)
		digits[count++] = (char)('0' + pid % 10);
	while (count > 0)
		path[size++] = digits[--count];
	memcpy(path + size, after, strlen(after) + 1);
	return size + strlen(after);
}

/* True if a process has a file of the driver open, or does not let us see. */
static bool has_files(int64_t pid)
{
	char path[64];
	char link[64];
	_Alignas(struct entry) char list[2048];
	size_t size = put_path(path, pid, "/fd/");
	int directory = system_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = directory < 0;
	int before = errno;
	while (!found) {
		long got = syscall(SYS_getdents64, directory, list, sizeof list);
		if (got <= 0)
			break;
		for (long at = 0; at < got && !found;) {
			struct entry *entry = (struct entry *)(void *)(list + at);
			at += entry->size;
			if (strlen(entry->name) >= sizeof path - size)
				continue;
			memcpy(path + size, entry->name, strlen(entry->name) + 1);
			found = system_read_link(path, link, sizeof link) > 0 &&
			        strncmp(link, heir_files, strlen(heir_files)) == 0;
		}
	}
	errno = before;
	if (directory >= 0)
		system_close(directory);
	return found;
}

bool heir_lives(struct segment *segment, uint64_t of)
{
	for (int i = 0; i < SEGMENT_HEIRS_MAX; i++) {
		struct segment_heir *place = &segment->heirs[i];
		uint64_t owner = atomic_load(&place->owner);
		if (owner == 0 || atomic_load(&place->of) != of)
			continue;
		if (!process_is_gone(owner) && has_files(process_owner_pid(owner)))
			return true;
		(void)atomic_compare_exchange_strong(&place->owner, &owner, 0);
	}
	return false;
}
