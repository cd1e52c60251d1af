/* reflector.c - follows all objects of one resource of the API server, as a state machine */
#include "kube/reflector.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "json/member.h"

#define LINE_BYTES_MAX ((size_t)16 << 20) /* no object of an API server is that large */
#define LIST_BYTES_MAX ((size_t)256 << 20)

struct known {
	json_t *object;
	uint64_t round; /* in which it was last heard of */
};

static bool asks_for_all(const struct reflector *reflector)
{
	return reflector->version[0] == '\0';
}

void reflector_request(struct reflector *reflector, struct buffer *path)
{
	buffer_clear(&reflector->line);
	buffer_text(path, reflector->path);
	if (asks_for_all(reflector)) {
		if (!reflector->page[0])
			reflector->round++;
		reflector->listing = reflector->paged;
	}
	if (reflector->listing) {
		buffer_print(path, "?limit=500%s%s%s", reflector->page[0] ? "&continue=" : "",
		             reflector->page, reflector->query);
		return;
	}
	buffer_print(path, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=290%s",
	             reflector->query);
	if (asks_for_all(reflector))
		buffer_text(path, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
	else
		buffer_print(path, "&resourceVersion=%s", reflector->version);
}

static void begin_again(struct reflector *reflector)
{
	reflector->version[0] = reflector->page[0] = '\0';
	reflector->listing = false;
}

bool reflector_status(struct reflector *reflector, int status, struct error *error)
{
	bool refused = status == 400 || status == 422;

	if (status == 200)
		return true;
	if (status == 410)
		begin_again(reflector);
	if (refused && !reflector->paged && asks_for_all(reflector))
		reflector->paged = true;
	return error_set(error,
	                 status == 401 || status == 403 ? ERROR_FORBIDDEN : ERROR_UNAVAILABLE,
	                 "the API server answered %s with status %d", reflector->path, status);
}

/* Texts that go into a path: what a server gives out as a version or a page has no others. */
static bool take_text(char *to, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size || strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                                   "0123456789-_.~=") != length)
		return false;
	memcpy(to, text, length + 1);
	return true;
}

static void take_version(struct reflector *reflector, const json_t *object)
{
	const char *version = member_text(json_object_get(object, "metadata"), "resourceVersion");

	if (*version && !take_text(reflector->version, sizeof(reflector->version), version))
		reflector->version[0] = '\0';
}

static const char *uid_of(const json_t *object)
{
	return member_text(json_object_get(object, "metadata"), "uid");
}

static void print_object_name(const json_t *object, struct buffer *name)
{
	const json_t *metadata = json_object_get(object, "metadata");

	buffer_print(name, "%s/%s", member_text(metadata, "namespace"),
	             member_text(metadata, "name"));
}

static void gone(struct reflector *reflector, const char *name, const json_t *last)
{
	struct known *known = text_map_remove(&reflector->objects, name);

	if (!known)
		return;
	reflector->sink(reflector->context, REFLECTOR_GONE, last ? last : known->object);
	json_decref(known->object);
	free(known);
}

static void put(struct reflector *reflector, json_t *object)
{
	struct buffer name = { 0 };

	if (!*uid_of(object))
		return;
	print_object_name(object, &name);
	struct known *known = text_map_get(&reflector->objects, name.data);
	/* One that was deleted while nobody looked, and made again under its name. */
	if (known && strcmp(uid_of(known->object), uid_of(object)) != 0) {
		gone(reflector, name.data, NULL);
		known = NULL;
	}
	if (!known) {
		known = NEW(struct known);
		text_map_put(&reflector->objects, name.data, known);
	}
	buffer_free(&name);
	json_incref(object);
	json_decref(known->object);
	known->object = object;
	known->round = reflector->round;
	reflector->sink(reflector->context, REFLECTOR_PUT, object);
}

static void deleted(struct reflector *reflector, const json_t *object)
{
	struct buffer name = { 0 };

	print_object_name(object, &name);
	const struct known *known = text_map_get(&reflector->objects, name.data);
	if (known && strcmp(uid_of(known->object), uid_of(object)) == 0)
		gone(reflector, name.data, object);
	buffer_free(&name);
}

/* The names are copied: an entry's own goes with it. */
static void drop_unheard(struct reflector *reflector)
{
	const struct text_map *map = &reflector->objects;
	char **names = memory_zero(map->count + 1, sizeof(*names));
	size_t count = 0;

	for (size_t i = 0; i < map->capacity; i++) {
		const struct known *known = map->entries[i].value;
		if (known && known->round != reflector->round)
			names[count++] = memory_text(map->entries[i].key);
	}
	for (size_t i = 0; i < count; i++) {
		gone(reflector, names[i], NULL);
		free(names[i]);
	}
	free(names);
}

static void all_heard(struct reflector *reflector)
{
	drop_unheard(reflector);
	reflector->synced = true;
	reflector->sink(reflector->context, REFLECTOR_SYNCED, NULL);
}

static bool ends_the_beginning(const json_t *object)
{
	const json_t *annotations =
	    json_object_get(json_object_get(object, "metadata"), "annotations");

	return strcmp(member_text(annotations, "k8s.io/initial-events-end"), "true") == 0;
}

static bool take_event(struct reflector *reflector, const json_t *event, struct error *error)
{
	const char *type = member_text(event, "type");
	json_t *object = json_object_get(event, "object");

	if (strcmp(type, "ERROR") == 0) {
		if (member_integer(object, "code") == 410)
			begin_again(reflector);
		return error_set(error, ERROR_UNAVAILABLE, "the watch of %s ended: %.160s",
		                 reflector->path, member_text(object, "message"));
	}
	if (!json_is_object(object))
		return error_set(error, ERROR_CORRUPT, "an event of %s has no object",
		                 reflector->path);
	if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
		put(reflector, object);
	else if (strcmp(type, "DELETED") == 0)
		deleted(reflector, object);
	/* Until all is heard no version can be continued from. */
	bool bookmark = strcmp(type, "BOOKMARK") == 0;
	if (bookmark && ends_the_beginning(object)) {
		take_version(reflector, object);
		all_heard(reflector);
	} else if (!asks_for_all(reflector)) {
		take_version(reflector, object);
	}
	return true;
}

static bool take_line(struct reflector *reflector, struct error *error)
{
	json_error_t reason;
	struct buffer *line = &reflector->line;

	if (line->size == 0)
		return true;
	json_t *event = json_loadb(line->data, line->size, 0, &reason);
	buffer_clear(line);
	if (!event) {
		begin_again(reflector);
		return error_set(error, ERROR_CORRUPT, "an event of %s is not JSON: %.120s",
		                 reflector->path, reason.text);
	}
	bool taken = take_event(reflector, event, error);
	json_decref(event);
	return taken;
}

bool reflector_feed(struct reflector *reflector, const char *data, size_t size, struct error *error)
{
	size_t most = reflector->listing ? LIST_BYTES_MAX : LINE_BYTES_MAX;

	while (size > 0) {
		const char *end = reflector->listing ? NULL : memchr(data, '\n', size);
		size_t part = end ? (size_t)(end - data) : size;
		if (reflector->line.size + part > most) {
			begin_again(reflector);
			return error_set(error, ERROR_CORRUPT, "an answer of %s is too large",
			                 reflector->path);
		}
		buffer_bytes(&reflector->line, data, part);
		if (end && !take_line(reflector, error))
			return false;
		part += end != NULL;
		data += part;
		size -= part;
	}
	return true;
}

static bool take_page(struct reflector *reflector, const json_t *list, struct error *error)
{
	const json_t *metadata = json_object_get(list, "metadata");
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(list, "items"), i, item) put(reflector, item);
	if (!take_text(reflector->page, sizeof(reflector->page),
	               member_text(metadata, "continue"))) {
		begin_again(reflector);
		return error_set(error, ERROR_CORRUPT, "a list of %s continues where it cannot",
		                 reflector->path);
	}
	if (reflector->page[0])
		return true;
	reflector->listing = false;
	take_version(reflector, list);
	all_heard(reflector);
	return true;
}

bool reflector_end(struct reflector *reflector, struct error *error)
{
	json_error_t reason;

	if (!reflector->listing) {
		buffer_clear(&reflector->line);
		return true;
	}
	json_t *list = json_loadb(reflector->line.data ? reflector->line.data : "",
	                          reflector->line.size, 0, &reason);
	buffer_clear(&reflector->line);
	if (!list) {
		begin_again(reflector);
		return error_set(error, ERROR_CORRUPT, "a list of %s is not JSON: %.120s",
		                 reflector->path, reason.text);
	}
	bool taken = take_page(reflector, list, error);
	json_decref(list);
	return taken;
}

void reflector_lost(struct reflector *reflector)
{
	begin_again(reflector);
}

void reflector_free(struct reflector *reflector)
{
	for (size_t i = 0; i < reflector->objects.capacity; i++) {
		struct known *known = reflector->objects.entries[i].value;
		if (known)
			json_decref(known->object);
		free(known);
	}
	text_map_free(&reflector->objects);
	buffer_free(&reflector->line);
}
