/* vault.c - secrets of tasks, sealed on this node by a key of its own */
#include "agent/host/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "base/log.h"
#include "wire/text/json_scan.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

#define MEMBER "secret_environment"
#define KEY_BYTES 32
#define KEY_FILE_BYTES 4096
#define SECRETS_BYTES ((size_t)16 << 20)

/* NAME:KEY, as secret_keys_read() reads it. */
static bool write_key(int fd)
{
	unsigned char key[KEY_BYTES];
	char text[KEY_BYTES * 2];
	bool made = RAND_bytes(key, sizeof(key)) == 1;

	EVP_EncodeBlock((unsigned char *)text, key, sizeof(key));
	made = made && dprintf(fd, "node:%s\n", text) > 0 && fsync(fd) == 0;
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(text, sizeof(text));
	return made;
}

/* The file is there as a whole or not at all. */
static bool make_key(const char *path)
{
	char *new_path = file_path("%s.new", path);
	int fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool made =
	    fd >= 0 && fchmod(fd, 0600) == 0 && write_key(fd) && rename(new_path, path) == 0;

	if (fd >= 0)
		close(fd);
	free(new_path);
	return made;
}

static bool is_private(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
	       (status.st_mode & 077) == 0;
}

struct secret_keys *vault_keys(const char *state_directory, struct error *error)
{
	char *path = file_path("%s/node.key", state_directory);
	struct buffer text = { 0 };
	struct secret_keys *keys = NULL;

	if (access(path, F_OK) != 0 && !make_key(path))
		error_set(error, ERROR_UNAVAILABLE, "cannot make the key %s: %s", path,
		          strerror(errno));
	else if (!is_private(path))
		error_set(error, ERROR_FORBIDDEN,
		          "the key %s must be a file of the agent's user that no other can read "
		          "(chmod 600)",
		          path);
	else if (!file_read(path, KEY_FILE_BYTES, &text))
		error_set(error, ERROR_UNAVAILABLE, "cannot read the key %s: %s", path,
		          strerror(errno));
	else
		keys = secret_keys_read(text.data, error);
	if (text.data)
		explicit_bzero(text.data, text.size);
	buffer_free(&text);
	free(path);
	return keys;
}

bool vault_has_secrets(const void *data, size_t size)
{
	return size > 0 && memmem(data, size, "\"" MEMBER "\"", sizeof(MEMBER) + 1) != NULL;
}

static void name_context(char *context, size_t size, int64_t reservation_id)
{
	snprintf(context, size, "reservation-%" PRId64, reservation_id);
}

/* Writes all of the payload with secrets sealed. */
static bool seal_members(const struct secret_keys *keys, const struct node_order *order,
                         struct arena *arena, struct buffer *out, struct error *error)
{
	struct json_writer json = json_writer_to(out);
	struct json_scan scan = json_scan_of(text_of(order->payload), arena, error);
	struct text key = { NULL, 0 }, value = { NULL, 0 };
	char context[48];
	bool good = json_scan_open(&scan, JSON_KIND_OBJECT);

	name_context(context, sizeof(context), order->reservation_id);
	json_open_object(&json, NULL);
	while (good && json_scan_member(&scan, &key)) {
		bool secret = text_is(key, MEMBER);
		char *name = arena_alloc(arena, key.size + 1);
		memcpy(name, key.data, key.size);
		name[key.size] = '\0';
		good = json_scan_skip(&scan, &value);
		if (good && secret) {
			struct buffer sealed = { 0 };
			good = secret_seal(keys, context, value.data, value.size, &sealed, error);
			if (good)
				json_put_string(&json, name, sealed.data);
			buffer_free(&sealed);
		} else if (good) {
			json_put_raw(&json, name, value);
		}
	}
	json_close(&json);
	buffer_text(out, "");
	return good && !scan.failed;
}

void vault_seal(const struct secret_keys *keys, struct arena *arena, struct node_order *order)
{
	struct buffer out = { 0 };
	struct error error = { 0 };
	char *plain = (char *)order->payload;

	if (!plain || !vault_has_secrets(plain, strlen(plain)))
		return;
	bool sealed = seal_members(keys, order, arena, &out, &error);
	if (!sealed)
		log_at(LOG_ERROR, "the secrets of a task cannot be sealed",
		       LOG_NUMBER("reservation", order->reservation_id),
		       LOG_TEXT("reason", error.text));
	order->payload = sealed ? arena_copy(arena, out.data, out.size + 1)
	                        : arena_string(arena, "{\"" MEMBER "\":\"\"}");
	explicit_bzero(plain, strlen(plain));
	buffer_free(&out);
}

json_t *vault_open(const struct secret_keys *keys, int64_t reservation_id, const json_t *payload,
                   struct error *error)
{
	json_t *member = json_object_get(payload, MEMBER);
	struct json_limits limits = { .bytes = SECRETS_BYTES, .depth = 8, .values = 100000 };
	struct buffer plain = { 0 };
	json_t *secrets = NULL;
	char context[48];

	if (!json_is_string(member))
		return json_is_object(member) ? json_incref(member) : json_object();
	name_context(context, sizeof(context), reservation_id);
	if (!keys)
		error_set(error, ERROR_UNAVAILABLE, "there is no key to open its secrets with");
	else if (secret_open(keys, context, json_string_value(member), &plain, error))
		secrets = json_read((struct text){ plain.data, plain.size }, &limits, error);
	if (plain.data)
		explicit_bzero(plain.data, plain.size);
	buffer_free(&plain);
	return secrets;
}

void vault_forget(json_t *secrets)
{
	const char *name;
	json_t *value;

	json_object_foreach(secrets, name, value)
	{
		if (json_is_string(value))
			explicit_bzero((char *)json_string_value(value), json_string_length(value));
	}
	json_decref(secrets);
}
