/* stash.c - exported memory that only file descriptors still hold */
#include "guard/calls/stash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/budget/budget.h"
#include "guard/budget/mutex.h"
#include "guard/budget/system.h"
#include "guard/calls/charge.h"
#include "guard/calls/state.h"

enum {
	STASH_MAX = 1024,
	NUMBER_LEAST = 700, /* where a program's own descriptors seldom are */
};

/* In the upper half of what the set remembers with a descriptor. */
#define STASH_TAG (UINT64_C(0x67756472) << 32)

struct stashed {
	struct track_item item;
	bool taken, seen;
};

static struct {
	struct mutex mutex;
	int set; /* the epoll set, plus one; 0: none yet */
	_Atomic(int) count;
	struct stashed items[STASH_MAX];
} stash;

/* Raw calls, as in system.h. */
static int make_set(void)
{
	long made = syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
	if (made < 0)
		return -1;
	long high = syscall(SYS_fcntl, made, F_DUPFD_CLOEXEC, NUMBER_LEAST);
	if (high < 0)
		return (int)made;
	syscall(SYS_close, made);
	return (int)high;
}

void stash_watch(uint64_t object, int file)
{
	int before = errno;
	struct epoll_event event = { .data.u64 = STASH_TAG | (object & UINT32_MAX) };
	mutex_lock(&stash.mutex);
	if (stash.set == 0)
		stash.set = make_set() + 1;
	if (stash.set > 0)
		syscall(SYS_epoll_ctl, stash.set - 1, EPOLL_CTL_ADD, file, &event);
	mutex_unlock(&stash.mutex);
	errno = before;
}

/* Appends text and a number. */
static void name_set(char path[64], const char *directory, int number)
{
	char digits[12];
	int count = 0;
	size_t length = strlen(directory);
	memcpy(path, directory, length);
	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	while (count > 0)
		path[length++] = digits[--count];
	path[length] = '\0';
}

/* A program may close what it has not opened: then nothing is known any more. */
static bool is_set(int set)
{
	char path[64];
	char link[64];
	name_set(path, "/proc/self/fd/", set);
	return system_read_link(path, link, sizeof link) > 0 &&
	       strcmp(link, "anon_inode:[eventpoll]") == 0;
}

static uint64_t parse_hex(const char *text)
{
	uint64_t value = 0;
	for (;; text++) {
		if (*text >= '0' && *text <= '9')
			value = value << 4 | (uint64_t)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			value = value << 4 | (uint64_t)(*text - 'a' + 10);
		else
			return value;
	}
}

/* Calls back for each object of which a descriptor is left, by the lines of the set's fdinfo:
 * "tfd:  5 events: 19 data: 6775647200000001 ...". False if that cannot be read. */
static bool each_living(int set, void (*living)(void *context, uint64_t object), void *context)
{
	char path[64];
	char text[4096];
	size_t held = 0;
	name_set(path, "/proc/self/fdinfo/", set);
	int file = is_set(set) ? system_open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0)
		return false;
	for (;;) {
		long got = syscall(SYS_read, file, text + held, sizeof text - 1 - held);
		if (got <= 0)
			break;
		held += (size_t)got;
		text[held] = '\0';
		char *line = text;
		for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			const char *data = strstr(line, "data:");
			if (data == NULL)
				continue;
			data += 5;
			while (*data == ' ')
				data++;
			uint64_t value = parse_hex(data);
			if ((value & ~(uint64_t)UINT32_MAX) == STASH_TAG)
				living(context, value & UINT32_MAX);
		}
		held -= (size_t)(line - text);
		memmove(text, line, held);
		/* A line that long is none of the kernel's. */
		if (held == sizeof text - 1)
			held = 0;
	}
	system_close(file);
	return true;
}

struct search {
	uint64_t object;
	bool found;
};

static void compare(void *context, uint64_t object)
{
	struct search *search = context;
	search->found = search->found || object == (search->object & UINT32_MAX);
}

static bool is_bearer(const struct member *member, const struct track_item *item)
{
	return item->share < 0 || (item->share < SEGMENT_SHARES_MAX &&
	                           member->segment->shares[item->share].bearer == member->place);
}

bool stash_keep(const struct track_item *item)
{
	const struct member *member = state_member();
	struct search search = { .object = item->key };
	int before = errno;
	bool kept = false;
	mutex_lock(&stash.mutex);
	bool lives = stash.set > 0 && item->gpu >= 0 && member != NULL &&
	             each_living(stash.set - 1, compare, &search) && search.found;
	for (int i = 0; lives && i < STASH_MAX && !kept; i++) {
		struct stashed *stashed = &stash.items[i];
		if (stashed->taken)
			continue;
		*stashed = (struct stashed){ .item = *item, .taken = true };
		stashed->item.hidden = is_bearer(member, item);
		if (stashed->item.hidden)
			budget_hide(member, item->gpu, item->bytes);
		atomic_fetch_add(&stash.count, 1);
		kept = true;
	}
	mutex_unlock(&stash.mutex);
	errno = before;
	return kept;
}

static void mark(void *context, uint64_t object)
{
	(void)context;
	for (int i = 0; i < STASH_MAX; i++) {
		if (stash.items[i].taken && (stash.items[i].item.key & UINT32_MAX) == object)
			stash.items[i].seen = true;
	}
}

void stash_sweep(void)
{
	if (atomic_load_explicit(&stash.count, memory_order_relaxed) == 0)
		return;
	int before = errno;
	mutex_lock(&stash.mutex);
	for (int i = 0; i < STASH_MAX; i++)
		stash.items[i].seen = false;
	bool known = stash.set > 0 && each_living(stash.set - 1, mark, NULL);
	for (int i = 0; known && i < STASH_MAX; i++) {
		struct stashed *stashed = &stash.items[i];
		if (!stashed->taken || stashed->seen)
			continue;
		stashed->taken = false;
		atomic_fetch_sub(&stash.count, 1);
		charge_give(&stashed->item);
	}
	mutex_unlock(&stash.mutex);
	errno = before;
}

void stash_reset(void)
{
	if (stash.set > 0 && is_set(stash.set - 1))
		system_close(stash.set - 1);
	stash.set = 0;
	atomic_store(&stash.mutex.word, 0);
	atomic_store(&stash.count, 0);
	for (int i = 0; i < STASH_MAX; i++)
		stash.items[i].taken = false;
}
