/* job_payload.c - what the core does not read of a job: what to run, and with what */
#include "api/job/job_payload.h"
#include "base/hash.h"

#include <stdio.h>
#include <strings.h>

#include "api/job/job_json.h"
#include "api/notify/smtp.h"
#include "api/notify/webhook.h"

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

static const char *copy_key(struct arena *arena, struct text key)
{
	char *copy = arena_alloc(arena, key.size + 1);
	memcpy(copy, key.data, key.size);
	copy[key.size] = '\0';
	return copy;
}

/* True for the fields that say what runs. Arguments and an environment alone run nothing. */
static bool is_work(const struct resource_field *field)
{
	return field == &job_resource.fields[JOB_FIELD_command] ||
	       field == &job_resource.fields[JOB_FIELD_script] ||
	       field == &job_resource.fields[JOB_FIELD_image];
}

static void put_raw(struct job_payload *payload, const struct resource_field *field,
                    struct text raw)
{
	struct buffer *buffer = payload->buffer;
	if (payload->has_items)
		buffer_bytes(buffer, ",", 1);
	payload->has_items = true;
	payload->has_work |= is_work(field);
	buffer_bytes(buffer, "\"", 1);
	buffer_bytes(buffer, field->name, field->name_size);
	buffer_bytes(buffer, "\":", 2);
	buffer_bytes(buffer, raw.data, raw.size);
}

static struct text since(const struct json_scan *scan, const char *start)
{
	return (struct text){ start, (size_t)(scan->at - start) };
}

/* An array of texts. */
static bool payload_words(struct job_payload *payload, const struct resource_field *field,
                          struct json_scan *scan, struct error *error)
{
	int64_t count = 0;
	struct text word = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_ARRAY)
		return error_set(
		    error, ERROR_INVALID,
		    "%s must be an array of texts, such as [\"python\",\"train.py\"], "
		    "not one text: nothing splits it into words%s",
		    field->name,
		    strcmp(field->name, "command") == 0 ? "; a shell script goes into script" : "");
	const char *start = scan->at;
	json_scan_open(scan, JSON_KIND_ARRAY);
	while (json_scan_element(scan)) {
		if (json_scan_kind(scan) != JSON_KIND_TEXT)
			return error_set(error, ERROR_INVALID,
			                 "%s[%lld] must be a text in double quotes", field->name,
			                 (long long)count);
		if (!json_scan_text(scan, &word))
			return false;
		if (++count > field->items)
			return error_set(error, ERROR_INVALID, "%s has more than %lld words",
			                 field->name, (long long)field->items);
	}
	if (scan->failed)
		return false;
	if (count > 0)
		put_raw(payload, field, since(scan, start));
	return true;
}

static bool payload_text(struct job_payload *payload, const struct resource_field *field,
                         struct json_scan *scan, struct error *error)
{
	struct text value = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_TEXT)
		return field_refuse(field, error);
	const char *start = scan->at;
	if (!json_scan_text(scan, &value) || !field_check_size(field, value.size, error))
		return false;
	if (value.size > 0)
		put_raw(payload, field, since(scan, start));
	return true;
}

static bool is_word_of(const struct words *words, struct text text)
{
	int word = 0;

	while (word < words->count && !text_is(text, words->at[word]))
		word++;
	return word < words->count;
}

static bool same_text(struct text a, struct text b)
{
	return a.size == b.size && strncasecmp(a.data, b.data, a.size) == 0;
}

/* Whether the host is the domain, or below it. */
static bool is_host_below(struct text host, struct text domain)
{
	if (host.size > domain.size && host.data[host.size - domain.size - 1] == '.')
		host = (struct text){ host.data + host.size - domain.size, domain.size };
	return same_text(host, domain);
}

/* Whether the list, with commas, has the address itself, or a domain of its host. */
static bool is_listed_recipient(const char *list, struct text address, struct text host)
{
	struct text rest = text_of(list), one;

	while (text_next(&rest, ',', &one)) {
		while (one.size > 0 && one.data[0] == ' ')
			one = (struct text){ one.data + 1, one.size - 1 };
		while (one.size > 0 && one.data[one.size - 1] == ' ')
			one.size--;
		bool is_address = one.size > 0 && memchr(one.data, '@', one.size);
		if (one.size > 0 &&
		    (is_address ? same_text(address, one) : is_host_below(host, one)))
			return true;
	}
	return false;
}

static bool check_listed(const struct job_payload *payload, struct text text, const char *host,
                         struct error *error)
{
	const char *list = payload->notify_only;

	if (!list || !*list || is_listed_recipient(list, text, text_of(host)))
		return true;
	return error_set(error, ERROR_FORBIDDEN,
	                 "notify has %.100s, which is not among notifications.job_recipients_only",
	                 text.data);
}

/* A recipient that cannot be told is refused when the job is submitted. */
static bool check_recipient(const struct job_payload *payload, struct text text,
                            struct error *error)
{
	struct webhook_url url;
	struct error reason = { 0 };

	if (!payload->may_notify)
		return error_set(error, ERROR_FORBIDDEN,
		                 "notify cannot be set: notifications.job_recipients is off");
	if (!text_starts(text, "http://") && !text_starts(text, "https://")) {
		if (!smtp_address_check(text.data, &reason))
			return error_set(
			    error, ERROR_INVALID,
			    "notify must have mail addresses such as name@example.org, or URLs");
		return check_listed(payload, text, strrchr(text.data, '@') + 1, error);
	}
	if (!webhook_url_read(text.data, &url, &reason))
		return error_set(error, ERROR_INVALID, "notify is refused: %s", reason.text);
	if (!payload->may_notify_private && fetch_is_private_host(url.host))
		return error_set(error, ERROR_INVALID,
		                 "notify has an address of this machine or of a private network: "
		                 "notifications.allow_private_addresses allows that");
	return check_listed(payload, text, url.host, error);
}

/* Recipients, or the words of what they are told. */
static bool payload_recipients(struct job_payload *payload, const struct resource_field *field,
                               struct json_scan *scan, struct error *error)
{
	bool words = field->kind == VALUE_WORDS;
	int64_t count = 0;
	struct text one = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_ARRAY)
		return error_set(error, ERROR_INVALID, "%s must be a list of texts", field->name);
	const char *start = scan->at;
	json_scan_open(scan, JSON_KIND_ARRAY);
	while (json_scan_element(scan)) {
		if (json_scan_kind(scan) != JSON_KIND_TEXT)
			return error_set(error, ERROR_INVALID, "%s must be a list of texts",
			                 field->name);
		if (!json_scan_text(scan, &one))
			return false;
		if (++count > field->items)
			return error_set(error, ERROR_INVALID, "%s has more than %lld entries",
			                 field->name, (long long)field->items);
		if (words && !is_word_of(field->words, one))
			return field_refuse(field, error);
		const char *text = copy_key(scan->arena, one);
		if (!words && !check_recipient(payload, text_of(text), error))
			return false;
	}
	if (scan->failed)
		return false;
	if (count > 0)
		*(words ? &payload->notify_on : &payload->notify) = since(scan, start);
	return true;
}

/* One of the field's words. The first is the default and is not kept. */
static bool payload_word(struct job_payload *payload, const struct resource_field *field,
                         struct json_scan *scan, struct error *error)
{
	struct text value = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_TEXT)
		return field_refuse(field, error);
	const char *start = scan->at;
	if (!json_scan_text(scan, &value))
		return false;
	if (!is_word_of(field->words, value))
		return field_refuse(field, error);
	if (!text_is(value, field->words->at[0]))
		put_raw(payload, field, since(scan, start));
	return true;
}

static bool job_payload_check_name(const struct resource_field *field, struct text key,
                                   struct error *error)
{
	return (key.size > 0 && !memchr(key.data, '=', key.size)) ||
	       error_set(error, ERROR_INVALID, "%s has a name that is empty or has '=' in it",
	                 field->name);
}

static bool check_pair(const struct resource_field *field, struct text key, struct text value,
                       struct error *error)
{
	return field->most == 0 || key.size + value.size <= (size_t)field->most ||
	       error_set(error, ERROR_INVALID,
	                 "%s.%.*s is longer than %lld bytes, name and value together", field->name,
	                 (int)(key.size < 64 ? key.size : 64), key.data, (long long)field->most);
}

/* An object of texts; `raw` is it as it stands. */
static bool payload_map(const struct resource_field *field, struct json_scan *scan,
                        struct text *raw, struct error *error)
{
	struct json_keys keys = { 0 };
	struct text key = { NULL, 0 }, value = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_OBJECT)
		return field_refuse(field, error);
	const char *start = scan->at;
	json_scan_open(scan, JSON_KIND_OBJECT);
	while (json_scan_member(scan, &key)) {
		int shown = (int)(key.size < 64 ? key.size : 64);
		if (!job_payload_check_name(field, key, error))
			return false;
		if (!json_keys_add(&keys, scan->arena, key))
			return error_set(error, ERROR_INVALID, "%s has %.*s twice", field->name,
			                 shown, key.data);
		if (keys.count > (size_t)field->items)
			return error_set(error, ERROR_INVALID, "%s has more than %lld members",
			                 field->name, (long long)field->items);
		if (json_scan_kind(scan) != JSON_KIND_TEXT)
			return error_set(error, ERROR_INVALID,
			                 "%s.%.*s must be a text: put double quotes around it",
			                 field->name, shown, key.data);
		if (!json_scan_text(scan, &value) || !check_pair(field, key, value, error))
			return false;
	}
	*raw = since(scan, start);
	return !scan->failed;
}

/* What it runs: two jobs with the same command, script and image run the same program. */
static void note_program(struct job_payload *payload, const struct resource_field *field,
                         const struct json_scan *scan, const char *start)
{
	const struct resource_field *fields = job_resource.fields;

	if (field != &fields[JOB_FIELD_command] && field != &fields[JOB_FIELD_script] &&
	    field != &fields[JOB_FIELD_image])
		return;
	if (field == &fields[JOB_FIELD_image])
		payload->has_image = scan->at - start > (ptrdiff_t)sizeof("\"\"") - 1;
	uint64_t name = hash_bytes(field->name, field->name_size);
	payload->program ^= hash_combine(name, hash_bytes(start, (size_t)(scan->at - start)));
}

bool job_payload_member(struct job_payload *payload, const struct resource_field *field,
                        struct json_scan *scan, struct error *error)
{
	struct text raw = { NULL, 0 };

	INVARIANT(field->in_payload);
	const char *start = scan->at;
	if (field->kind == VALUE_WORD)
		return payload_word(payload, field, scan, error);
	if (field == &job_resource.fields[JOB_FIELD_notify] ||
	    field == &job_resource.fields[JOB_FIELD_notify_on])
		return payload_recipients(payload, field, scan, error);
	if (field->kind == VALUE_TEXTS || field->kind == VALUE_TEXT) {
		bool read = (field->kind == VALUE_TEXTS ? payload_words : payload_text)(
		    payload, field, scan, error);
		if (read)
			note_program(payload, field, scan, start);
		return read;
	}
	INVARIANT(field->kind == VALUE_MAP);
	if (field->shown_as)
		return payload_map(field, scan, &payload->secrets, error);
	if (!payload_map(field, scan, &raw, error))
		return false;
	put_raw(payload, field, raw);
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
		put_raw(payload, &job_resource.fields[JOB_FIELD_secret_environment],
		        (struct text){ quoted.data, quoted.size });
		buffer_free(&quoted);
	}
	buffer_free(&sealed);
	return done;
}

/* The payload with those first who are to be told. */
static const char *with_recipients(const struct job_payload *payload, struct arena *arena)
{
	struct text rest = { payload->buffer->data + 1, payload->buffer->size - 1 };
	struct buffer all = { 0 };

	buffer_text(&all, "{\"notify\":");
	buffer_bytes(&all, payload->notify.data, payload->notify.size);
	if (payload->notify_on.data) {
		buffer_text(&all, ",\"notify_on\":");
		buffer_bytes(&all, payload->notify_on.data, payload->notify_on.size);
	}
	if (payload->has_items)
		buffer_text(&all, ",");
	buffer_bytes(&all, rest.data, rest.size);
	buffer_bytes(&all, "}", 2); /* with the NUL behind it */
	const char *text = arena_copy(arena, all.data, all.size);
	buffer_free(&all);
	return text;
}

bool job_payload_finish(struct job_payload *payload, const struct secret_keys *keys,
                        int64_t tenant_id, struct arena *arena, const char **text,
                        struct error *error)
{
	*text = "";
	if (payload->secrets.data && !seal(payload, keys, tenant_id, error))
		return false;
	if (payload->notify.data) {
		*text = with_recipients(payload, arena);
		return true;
	}
	if (!payload->has_items)
		return true;
	buffer_bytes(payload->buffer, "}", 2); /* with the NUL behind it */
	*text = arena_copy(arena, payload->buffer->data, payload->buffer->size);
	return true;
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

struct text job_payload_text(const char *payload, struct text name, struct arena *arena)
{
	struct json_scan scan = json_scan_of(text_of(payload), arena, NULL);
	struct text key = { NULL, 0 }, value = { NULL, 0 };

	if (!*payload || !json_scan_open(&scan, JSON_KIND_OBJECT))
		return (struct text){ NULL, 0 };
	while (json_scan_member(&scan, &key)) {
		if (text_equal(key, name) && json_scan_kind(&scan) == JSON_KIND_TEXT)
			return json_scan_text(&scan, &value) ? value : (struct text){ NULL, 0 };
		json_scan_skip(&scan, NULL);
	}
	return (struct text){ NULL, 0 };
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
