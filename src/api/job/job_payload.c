/* job_payload.c - what the core does not read of a job: what to run, and with what */
#include "api/job/job_payload.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/job/job_json.h"

enum {
	WORDS_MAX = 4096,
	VARIABLES_MAX = 4096,
	LABELS_MAX = 64,
	LABEL_BYTES_MAX = 256,
	SCRIPT_BYTES_MAX = 512 * 1024,
	PATH_BYTES_MAX = 4096,
};

void job_secret_context(char out[32], int64_t tenant_id)
{
	snprintf(out, 32, "tenant-%lld", (long long)tenant_id);
}

void job_payload_begin(struct job_payload *payload, struct buffer *buffer)
{
	*payload = (struct job_payload){ .buffer = buffer };
	buffer_clear(buffer);
	buffer_bytes(buffer, "{", 1);
}

static void put_raw(struct job_payload *payload, const char *name, struct text raw)
{
	struct buffer *buffer = payload->buffer;
	if (payload->has_items)
		buffer_bytes(buffer, ",", 1);
	payload->has_items = true;
	buffer_bytes(buffer, "\"", 1);
	buffer_bytes(buffer, name, strlen(name));
	buffer_bytes(buffer, "\":", 2);
	buffer_bytes(buffer, raw.data, raw.size);
}

static struct text since(const struct json_scan *scan, const char *start)
{
	return (struct text){ start, (size_t)(scan->at - start) };
}

/* An array of texts. */
static bool words(struct job_payload *payload, const char *name, struct json_scan *scan,
                  struct error *error)
{
	bool is_command = strcmp(name, "command") == 0;
	size_t count = 0;
	struct text word = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_ARRAY)
		return error_set(error, ERROR_INVALID,
		                 "%s must be an array of texts, such as [\"python\",\"train.py\"], "
		                 "not one text: nothing splits it into words%s",
		                 name, is_command ? "; a shell script goes into script" : "");
	const char *start = scan->at;
	json_scan_open(scan, JSON_KIND_ARRAY);
	while (json_scan_element(scan)) {
		if (json_scan_kind(scan) != JSON_KIND_TEXT)
			return error_set(error, ERROR_INVALID,
			                 "%s[%zu] must be a text in double quotes", name, count);
		if (!json_scan_text(scan, &word))
			return false;
		if (++count > WORDS_MAX)
			return error_set(error, ERROR_INVALID, "%s has more than %d words", name,
			                 WORDS_MAX);
	}
	if (scan->failed)
		return false;
	if (count > 0)
		put_raw(payload, name, since(scan, start));
	return true;
}

static bool one_text(struct job_payload *payload, const char *name, size_t most,
                     struct json_scan *scan, struct error *error)
{
	struct text value = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_TEXT)
		return error_set(error, ERROR_INVALID, "%s must be a text in double quotes", name);
	const char *start = scan->at;
	if (!json_scan_text(scan, &value))
		return false;
	if (value.size > most)
		return error_set(error, ERROR_INVALID, "%s is longer than %zu bytes", name, most);
	if (value.size > 0)
		put_raw(payload, name, since(scan, start));
	return true;
}

/* A node has no directory that a relative path could be meant from. */
static bool one_path(struct job_payload *payload, const char *name, struct json_scan *scan,
                     struct error *error)
{
	struct json_scan ahead = *scan;
	struct text value = { NULL, 0 };

	if (json_scan_kind(&ahead) == JSON_KIND_TEXT && json_scan_text(&ahead, &value) &&
	    value.size > 0 && value.data[0] != '/')
		return error_set(error, ERROR_INVALID,
		                 "%s must be an absolute path, one that begins with '/'", name);
	return one_text(payload, name, PATH_BYTES_MAX, scan, error);
}

static bool check_variable(const char *name, struct text key, struct error *error)
{
	if (key.size == 0 || memchr(key.data, '=', key.size))
		return error_set(error, ERROR_INVALID,
		                 "%s has a name that is empty or has '=' in it: no variable can be "
		                 "called that",
		                 name);
	return true;
}

/* An object of texts; `raw` is it as it stands. */
static bool variables(const char *name, size_t most, struct json_scan *scan, struct text *raw,
                      struct error *error)
{
	struct json_keys keys = { 0 };
	struct text key = { NULL, 0 }, value = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_OBJECT)
		return error_set(error, ERROR_INVALID,
		                 "%s must be an object of texts, such as {\"NAME\":\"value\"}",
		                 name);
	const char *start = scan->at;
	json_scan_open(scan, JSON_KIND_OBJECT);
	while (json_scan_member(scan, &key)) {
		int shown = (int)(key.size < 64 ? key.size : 64);
		if (!check_variable(name, key, error))
			return false;
		if (!json_keys_add(&keys, scan->arena, key))
			return error_set(error, ERROR_INVALID, "%s has %.*s twice", name, shown,
			                 key.data);
		if (keys.count > most)
			return error_set(error, ERROR_INVALID, "%s has more than %zu members", name,
			                 most);
		if (json_scan_kind(scan) != JSON_KIND_TEXT)
			return error_set(error, ERROR_INVALID,
			                 "%s.%.*s must be a text: put double quotes around it",
			                 name, shown, key.data);
		if (!json_scan_text(scan, &value))
			return false;
	}
	*raw = since(scan, start);
	return !scan->failed;
}

bool job_payload_member(struct job_payload *payload, const char *name, struct json_scan *scan,
                        struct error *error)
{
	struct text raw = { NULL, 0 };

	if (strcmp(name, "command") == 0 || strcmp(name, "args") == 0)
		return words(payload, name, scan, error);
	if (strcmp(name, "script") == 0)
		return one_text(payload, name, SCRIPT_BYTES_MAX, scan, error);
	if (strcmp(name, "secret_environment") == 0)
		return variables(name, VARIABLES_MAX, scan, &payload->secrets, error);
	if (strcmp(name, "working_directory") == 0 || strcmp(name, "checkpoint_path") == 0)
		return one_path(payload, name, scan, error);
	if (strcmp(name, "environment") != 0 && strcmp(name, "labels") != 0)
		return one_text(payload, name, PATH_BYTES_MAX, scan, error);
	size_t most = *name == 'l' ? LABELS_MAX : VARIABLES_MAX;
	if (!variables(name, most, scan, &raw, error))
		return false;
	put_raw(payload, name, raw);
	return true;
}

static bool seal(struct job_payload *payload, const struct secret_keys *keys, int64_t tenant_id,
                 struct error *error)
{
	struct buffer sealed = { 0 };
	char context[32];

	if (!keys)
		return error_set(
		    error, ERROR_INVALID,
		    "secret_environment cannot be kept safe here: no key is configured. "
		    "Set store.secret_keys in the configuration of the service, or use "
		    "environment");
	job_secret_context(context, tenant_id);
	bool done = secret_seal(keys, context, payload->secrets.data, payload->secrets.size,
	                        &sealed, error);
	if (done) {
		struct buffer quoted = { 0 };
		buffer_print(&quoted, "\"%.*s\"", (int)sealed.size, sealed.data);
		put_raw(payload, "secret_environment", (struct text){ quoted.data, quoted.size });
		buffer_free(&quoted);
	}
	buffer_free(&sealed);
	return done;
}

bool job_payload_finish(struct job_payload *payload, const struct secret_keys *keys,
                        int64_t tenant_id, struct arena *arena, const char **text,
                        struct error *error)
{
	*text = "";
	if (payload->secrets.data && !seal(payload, keys, tenant_id, error))
		return false;
	if (!payload->has_items)
		return true;
	buffer_bytes(payload->buffer, "}", 2); /* with the NUL behind it */
	*text = arena_copy(arena, payload->buffer->data, payload->buffer->size);
	return true;
}

static int compare_texts(const void *a, const void *b)
{
	const struct text *left = a, *right = b;
	size_t size = left->size < right->size ? left->size : right->size;
	int order = memcmp(left->data, right->data, size);
	return order != 0 ? order : (left->size > right->size) - (left->size < right->size);
}

static bool check_label(struct text key, struct text value, struct error *error)
{
	bool fits = key.size > 0 && key.size <= LABEL_BYTES_MAX && value.size <= LABEL_BYTES_MAX;
	bool plain = !memchr(key.data, '=', key.size) && !memchr(key.data, '\n', key.size) &&
	             !memchr(value.data, '\n', value.size);
	return (fits && plain) ||
	       error_set(error, ERROR_INVALID,
	                 "node_labels must have names without '=' and neither newlines nor more "
	                 "than %d bytes in names and values",
	                 LABEL_BYTES_MAX);
}

bool job_payload_node_labels(struct json_scan *scan, struct arena *arena, const char **labels,
                             struct error *error)
{
	struct text pairs[LABELS_MAX], key = { NULL, 0 }, value = { NULL, 0 };
	size_t count = 0, size = 0;

	if (json_scan_kind(scan) != JSON_KIND_OBJECT)
		return error_set(
		    error, ERROR_INVALID,
		    "node_labels must be an object of texts, such as {\"zone\":\"a\"}");
	json_scan_open(scan, JSON_KIND_OBJECT);
	while (json_scan_member(scan, &key)) {
		if (count == LABELS_MAX)
			return error_set(error, ERROR_INVALID,
			                 "node_labels has more than %d members", LABELS_MAX);
		if (json_scan_kind(scan) != JSON_KIND_TEXT)
			return error_set(
			    error, ERROR_INVALID,
			    "node_labels.%.*s must be a text: put double quotes around it",
			    (int)(key.size < 64 ? key.size : 64), key.data);
		if (!json_scan_text(scan, &value) || !check_label(key, value, error))
			return false;
		char *pair = arena_alloc(arena, key.size + value.size + 2);
		memcpy(pair, key.data, key.size);
		pair[key.size] = '=';
		memcpy(pair + key.size + 1, value.data, value.size);
		pairs[count] = (struct text){ pair, key.size + value.size + 1 };
		size += pairs[count++].size + 1;
	}
	if (scan->failed)
		return false;
	qsort(pairs, count, sizeof(pairs[0]), compare_texts);
	char *all = arena_alloc(arena, size + 1);
	size = 0;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			all[size++] = '\n';
		memcpy(all + size, pairs[i].data, pairs[i].size);
		size += pairs[i].size;
	}
	all[size] = '\0';
	*labels = all;
	return true;
}

static const char *copy_key(struct arena *arena, struct text key)
{
	char *copy = arena_alloc(arena, key.size + 1);
	memcpy(copy, key.data, key.size);
	copy[key.size] = '\0';
	return copy;
}

void job_payload_show(struct json_writer *json, const char *payload, struct arena *arena)
{
	struct json_scan scan = json_scan_of(text_of(payload), arena, NULL);
	struct text key = { NULL, 0 }, raw = { NULL, 0 };

	if (!*payload || !json_scan_open(&scan, JSON_KIND_OBJECT))
		return;
	while (json_scan_member(&scan, &key) && json_scan_skip(&scan, &raw)) {
		if (text_is(key, "secret_environment"))
			json_put_string(json, "secret_environment", "sealed");
		else
			json_put_raw(json, copy_key(arena, key), raw);
	}
}

struct text job_payload_label(const char *payload, struct text name, struct arena *arena)
{
	struct json_scan scan = json_scan_of(text_of(payload), arena, NULL);
	struct text key = { NULL, 0 }, value = { NULL, 0 };

	if (!*payload || !json_scan_open(&scan, JSON_KIND_OBJECT))
		return (struct text){ NULL, 0 };
	while (json_scan_member(&scan, &key)) {
		if (!text_is(key, "labels")) {
			json_scan_skip(&scan, NULL);
			continue;
		}
		if (!json_scan_open(&scan, JSON_KIND_OBJECT))
			break;
		while (json_scan_member(&scan, &key) && json_scan_text(&scan, &value))
			if (text_equal(key, name))
				return value;
		break;
	}
	return (struct text){ NULL, 0 };
}
