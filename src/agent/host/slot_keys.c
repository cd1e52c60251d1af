/* slot_keys.c - the keys that requests to a model's server must carry */
#include "agent/host/slot_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/host/file.h"

#define DOOR_FORM "%" PRId64 " %d %s %s %s %d\n"
#define DOOR_BYTES 384

static bool make_one(char key[SLOT_KEY_SIZE + 1])
{
	unsigned char bytes[SLOT_KEY_SIZE / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(key + 2 * i, 3, "%02x", bytes[i]);
	explicit_bzero(bytes, sizeof(bytes));
	return true;
}

bool slot_keys_make(struct slot_keys *keys, struct error *error)
{
	return (make_one(keys->client) && make_one(keys->agent)) ||
	       error_set(error, ERROR_UNAVAILABLE, "the system gives no random bytes: %s",
	                 strerror(errno));
}

bool slot_key_matches(const char key[SLOT_KEY_SIZE + 1], struct text given)
{
	volatile unsigned char difference = 0;

	if (given.size != SLOT_KEY_SIZE)
		return false;
	for (size_t i = 0; i < SLOT_KEY_SIZE; i++)
		difference |= (unsigned char)(key[i] ^ given.data[i]);
	return difference == 0;
}

bool slot_door_write(const char *path, const struct slot_door *door, struct error *error)
{
	char text[DOOR_BYTES];
	int size = snprintf(text, sizeof(text), DOOR_FORM, door->port, door->own_network,
	                    door->keys.client, door->keys.agent,
	                    door->certificate[0] ? door->certificate : "-", door->tls_only);

	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool written = fd >= 0 && write(fd, text, (size_t)size) == size;
	int reason = errno;
	if (fd >= 0)
		close(fd);
	explicit_bzero(text, sizeof(text));
	return written ||
	       error_set(error, ERROR_UNAVAILABLE, "cannot write %s: %s", path, strerror(reason));
}

static bool is_key(const char *text)
{
	return strspn(text, "0123456789abcdef") == SLOT_KEY_SIZE;
}

bool slot_door_read(const char *path, struct slot_door *door)
{
	struct buffer text = { 0 };
	char client[SLOT_KEY_SIZE + 2], agent[SLOT_KEY_SIZE + 2], certificate[SLOT_KEY_SIZE + 2];
	int own_network = 0, tls_only = 0, count = 0;
	bool whole = false;

	*door = (struct slot_door){ 0 };
	if (file_read(path, DOOR_BYTES, &text)) {
		buffer_text(&text, "");
		count = sscanf(text.data, "%" SCNd64 " %d %65s %65s %65s %d", &door->port,
		               &own_network, client, agent, certificate, &tls_only);
		/* Older agents wrote four. */
		whole = (count == 4 || count == 6) && door->port > 0 && door->port <= UINT16_MAX &&
		        is_key(client) && is_key(agent);
	}
	door->own_network = own_network != 0;
	door->tls_only = tls_only != 0;
	if (whole && count == 6 && is_key(certificate))
		memcpy(door->certificate, certificate, SLOT_KEY_SIZE + 1);
	if (whole) {
		memcpy(door->keys.client, client, SLOT_KEY_SIZE + 1);
		memcpy(door->keys.agent, agent, SLOT_KEY_SIZE + 1);
	}
	if (text.data)
		explicit_bzero(text.data, text.capacity);
	buffer_free(&text);
	return whole;
}
