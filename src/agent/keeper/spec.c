/* spec.c - what a keeper is told about the work that it keeps: names and values, NUL after each */
#include "agent/keeper/spec.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number_text.h"

enum spec_kind { SPEC_NUMBER, SPEC_TEXT, SPEC_LIST, SPEC_FLAG };

struct spec_field {
	const char *name;
	enum spec_kind kind;
	size_t offset;
};

#define FIELD(kind, member)                                                                        \
	{                                                                                          \
#member, kind, offsetof(struct spec, member)                                       \
	}

static const struct spec_field fields[] = {
	FIELD(SPEC_NUMBER, reservation_id),
	FIELD(SPEC_LIST, arguments),
	FIELD(SPEC_LIST, environment),
	FIELD(SPEC_TEXT, script),
	FIELD(SPEC_TEXT, failure),
	FIELD(SPEC_TEXT, directory),
	FIELD(SPEC_TEXT, submit_directory),
	FIELD(SPEC_TEXT, home),
	FIELD(SPEC_NUMBER, uid),
	FIELD(SPEC_NUMBER, gid),
	FIELD(SPEC_FLAG, keeps_privileges),
	FIELD(SPEC_NUMBER, grace_ms),
	FIELD(SPEC_NUMBER, runtime_ms),
	FIELD(SPEC_TEXT, lease_path),
	FIELD(SPEC_NUMBER, open_files),
	FIELD(SPEC_TEXT, prolog),
	FIELD(SPEC_TEXT, epilog),
	FIELD(SPEC_LIST, hook_environment),
	FIELD(SPEC_LIST, clean_up),
	FIELD(SPEC_LIST, clean_up_environment),
	FIELD(SPEC_TEXT, checkpoint_path),
	FIELD(SPEC_TEXT, status_path),
	FIELD(SPEC_TEXT, output_directory),
	FIELD(SPEC_NUMBER, output.file_bytes),
	FIELD(SPEC_NUMBER, output.files),
	FIELD(SPEC_FLAG, errors_apart),
	FIELD(SPEC_TEXT, proxy),
	FIELD(SPEC_NUMBER, server_port),
	FIELD(SPEC_FLAG, any_path),
	FIELD(SPEC_FLAG, own_network),
	FIELD(SPEC_FLAG, tls_only),
	FIELD(SPEC_TEXT, input_path),
	FIELD(SPEC_TEXT, session_path),
	FIELD(SPEC_TEXT, budget_path),
	FIELD(SPEC_FLAG, terminal),
	FIELD(SPEC_FLAG, group.can_kill),
	FIELD(SPEC_TEXT, group.path[TREE_UNIFIED]),
	FIELD(SPEC_TEXT, group.path[TREE_CPU]),
	FIELD(SPEC_TEXT, group.path[TREE_MEMORY]),
	FIELD(SPEC_TEXT, group.path[TREE_PIDS]),
	FIELD(SPEC_TEXT, group.path[TREE_DEVICES]),
	FIELD(SPEC_TEXT, group.path[TREE_FREEZER]),
};
#define FIELDS (sizeof(fields) / sizeof(*fields))
#define GROUP_NAME "groups"

static void spec_put(struct buffer *buffer, const char *name, const char *value)
{
	buffer_bytes(buffer, name, strlen(name) + 1);
	buffer_bytes(buffer, value, strlen(value) + 1);
}

static void spec_put_number(struct buffer *buffer, const char *name, int64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, number);
	spec_put(buffer, name, text);
}

static void spec_put_field(struct buffer *buffer, const struct spec_field *field, const void *at)
{
	switch (field->kind) {
	case SPEC_NUMBER:
		spec_put_number(buffer, field->name, *(const int64_t *)at);
		break;
	case SPEC_FLAG:
		spec_put_number(buffer, field->name, *(const bool *)at);
		break;
	case SPEC_TEXT:
		if (*(const char *const *)at)
			spec_put(buffer, field->name, *(const char *const *)at);
		break;
	case SPEC_LIST:
		for (char *const *text = *(char *const *const *)at; text && *text; text++)
			spec_put(buffer, field->name, *text);
		break;
	}
}

void spec_encode(struct buffer *buffer, const struct spec *spec)
{
	for (size_t i = 0; i < FIELDS; i++)
		spec_put_field(buffer, &fields[i], (const char *)spec + fields[i].offset);
	for (int i = 0; i < spec->group_count; i++)
		spec_put_number(buffer, GROUP_NAME, spec->groups[i]);
}

static const char *next_text(const char **data, size_t *size)
{
	const char *text = *data;
	const char *end = *size > 0 ? memchr(text, '\0', *size) : NULL;

	if (!end)
		return NULL;
	*size -= (size_t)(end - text) + 1;
	*data = end + 1;
	return text;
}

static char **spec_read_list(struct arena *arena, const char *name, const char *data, size_t size)
{
	size_t count = 0;
	const char *at = data, *key, *value;
	size_t left = size;

	while ((key = next_text(&at, &left)) && next_text(&at, &left))
		count += strcmp(key, name) == 0;
	char **list = arena_alloc(arena, (count + 1) * sizeof(*list));
	count = 0;
	while ((key = next_text(&data, &size)) && (value = next_text(&data, &size)))
		if (strcmp(key, name) == 0)
			list[count++] = arena_string(arena, value);
	list[count] = NULL;
	return list;
}

static bool read_number(const char *text, int64_t *number)
{
	return number_read(text_of(text), -INT64_MAX, INT64_MAX, number);
}

static bool spec_read_field(struct arena *arena, struct spec *spec, const char *name,
                            const char *value)
{
	int64_t number = 0;

	if (strcmp(name, GROUP_NAME) == 0) {
		if (spec->group_count >= SPEC_GROUPS_MAX || !read_number(value, &number))
			return false;
		spec->groups[spec->group_count++] = number;
		return true;
	}
	for (size_t i = 0; i < FIELDS; i++) {
		void *at = (char *)spec + fields[i].offset;
		if (strcmp(fields[i].name, name) != 0)
			continue;
		if (fields[i].kind == SPEC_TEXT)
			*(const char **)at = arena_string(arena, value);
		else if (fields[i].kind != SPEC_LIST && !read_number(value, &number))
			return false;
		else if (fields[i].kind == SPEC_NUMBER)
			*(int64_t *)at = number;
		else if (fields[i].kind == SPEC_FLAG)
			*(bool *)at = number != 0;
		return true;
	}
	return false;
}

bool spec_decode(struct arena *arena, const char *data, size_t size, struct spec *spec)
{
	const char *at = data, *name;
	size_t left = size;

	*spec = (struct spec){ .uid = -1, .gid = -1 };
	while ((name = next_text(&at, &left))) {
		const char *value = next_text(&at, &left);
		if (!value || !spec_read_field(arena, spec, name, value))
			return false;
	}
	for (size_t i = 0; i < FIELDS; i++)
		if (fields[i].kind == SPEC_LIST)
			*(char ***)(void *)((char *)spec + fields[i].offset) =
			    spec_read_list(arena, fields[i].name, data, size);
	return left == 0 && spec->status_path && spec->output_directory;
}

void spec_wipe(struct spec *spec)
{
	for (char **variable = spec->environment; variable && *variable; variable++) {
		explicit_bzero(*variable, strlen(*variable));
		*variable = NULL;
	}
}
