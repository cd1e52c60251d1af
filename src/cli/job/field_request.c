/* field_request.c - the fields of a request, from the options that set them */
#include "cli/job/field_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/duration.h"
#include "cli/text/quantity.h"

#define DURATION_MAX_MS (10000 * DAY_MS)

void field_request_decimal(json_t *request, const char *name, int64_t thousandths)
{
	json_object_set_new(request, name,
	                    thousandths % 1000 == 0 ? json_integer(thousandths / 1000)
	                                            : json_real((double)thousandths / 1000));
}

static bool read_flag(const struct session *session, const struct resource_field *field,
                      json_t *request, struct error *error)
{
	const char *opposite = field->option.negative;
	bool yes = arguments_has(session->arguments, field->option.name);
	bool no = opposite && arguments_has(session->arguments, opposite);
	if (yes && no)
		return error_set(error, ERROR_INVALID, "%s and %s contradict each other",
		                 field->option.name, opposite);
	if (yes || no)
		json_object_set_new(request, field->name, json_boolean(yes));
	return true;
}

/* yes or no */
static bool read_answer(const struct resource_field *field, const char *text, json_t *request,
                        struct error *error)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return error_set(error, ERROR_INVALID, "invalid %s '%.20s': expected yes or no",
		                 field->option.name, text);
	json_object_set_new(request, field->name, json_boolean(text[0] == 'y'));
	return true;
}

static bool read_integer(const struct resource_field *field, const char *text, json_t *request,
                         struct error *error)
{
	int64_t number, least = field->least, most = field->most;
	if (least == 0 && most == 0) {
		least = INT64_MIN;
		most = INT64_MAX;
	}
	bool unlimited = (field->also & ALSO_UNLIMITED) && strcmp(text, "unlimited") == 0;
	if (unlimited)
		number = -1;
	else if (field->unit == UNIT_MIB && strcmp(text, "-1") != 0) {
		if (!quantity_memory(field->option.name, text, &number, error))
			return false;
	} else if (!quantity_integer(field->option.name, text,
	                             field->also & ALSO_UNLIMITED ? -1 : least, most, &number,
	                             error))
		return false;
	json_object_set_new(request, field->name, json_integer(number));
	return true;
}

/* Decimals have three digits at most, and those of minutes are given as a duration. */
static bool read_decimal(const struct resource_field *field, const char *text, json_t *request,
                         struct error *error)
{
	int64_t thousandths;
	if (field->unit == UNIT_MINUTES) {
		int64_t ms;
		if (!quantity_duration(field->option.name, text, &ms, error))
			return false;
		/* In thousandths of a minute, rounded up: never less than what was asked for. */
		thousandths = (ms * 1000 + MINUTE_MS - 1) / MINUTE_MS;
	} else {
		/* The service checks the range of those with more digits. */
		int64_t most =
		    field->digits == 3 && field->most > 0 ? field->most : INT64_MAX / 1000;
		if ((field->also & ALSO_UNLIMITED) &&
		    (strcmp(text, "-1") == 0 || strcmp(text, "unlimited") == 0))
			thousandths = -1000;
		else if (!quantity_thousandths(field->option.name, text, most, &thousandths, error))
			return false;
	}
	field_request_decimal(request, field->name, thousandths);
	return true;
}

static bool read_duration(const struct resource_field *field, const char *text, json_t *request,
                          struct error *error)
{
	char duration[40];
	int64_t ms;
	if (!quantity_duration(field->option.name, text, &ms, error))
		return false;
	if (ms % 1000 == 0)
		snprintf(duration, sizeof(duration), "%llds", (long long)(ms / 1000));
	else
		snprintf(duration, sizeof(duration), "%lldms", (long long)ms);
	json_object_set_new(request, field->name, json_string(duration));
	return true;
}

/* The option as often as given, and with commas between where its values have none. */
static void read_texts(const struct session *session, const struct resource_field *field,
                       json_t *request)
{
	json_t *list = NULL;
	const char *text;
	size_t at = 0;
	while ((text = arguments_next(session->arguments, field->option.name, &at)) != NULL) {
		char *copy = memory_text(text), *rest = copy, *part;
		if (!list)
			list = json_array();
		if (field->kind == VALUE_TEXTS)
			json_array_append_new(list, json_string(text));
		else
			while ((part = strsep(&rest, ",")) != NULL)
				json_array_append_new(list, json_string(part));
		free(copy);
	}
	if (list)
		json_object_set_new(request, field->name, list);
}

bool field_request_pairs(struct session *session, const struct resource_field *field,
                         bool from_here, json_t *request, struct error *error)
{
	const char *option = field->option.name, *pair;
	json_t *pairs = NULL;
	size_t at = 0;
	while ((pair = arguments_next(session->arguments, option, &at)) != NULL) {
		const char *equals = strchr(pair, '=');
		const char *value = equals ? equals + 1 : from_here ? getenv(pair) : NULL;
		size_t size = equals ? (size_t)(equals - pair) : strlen(pair);
		if (size == 0 || !value) {
			json_decref(pairs);
			return error_set(
			    error, ERROR_INVALID,
			    !equals && from_here
				? "%s is '%.80s', which is not set here: write NAME=VALUE"
				: "invalid %s '%.80s': expected NAME=VALUE",
			    option, pair);
		}
		if (!pairs)
			pairs = json_object();
		char *name = arena_alloc(&session->arena, size + 1);
		memcpy(name, pair, size);
		name[size] = '\0';
		json_object_set_new(pairs, name, json_string(value));
	}
	if (pairs)
		json_object_set_new(request, field->name, pairs);
	return true;
}

static bool read_given(struct session *session, const struct resource_field *field, json_t *request,
                       struct error *error)
{
	const char *text = arguments_value(session->arguments, field->option.name);
	if (field->kind == VALUE_FLAG && !field->option.argument)
		return read_flag(session, field, request, error);
	if (!text)
		return true;
	/* Takes a limit away. */
	if (strcmp(text, "none") == 0 && field->empty == EMPTY_NULL) {
		json_object_set_new(request, field->name, json_null());
		return true;
	}
	switch (field->kind) {
	case VALUE_FLAG:
		return read_answer(field, text, request, error);
	case VALUE_INTEGER:
		return read_integer(field, text, request, error);
	case VALUE_DECIMAL:
		return read_decimal(field, text, request, error);
	case VALUE_DURATION:
		return read_duration(field, text, request, error);
	case VALUE_MAP:
		return field_request_pairs(session, field, false, request, error);
	case VALUE_TEXTS:
	case VALUE_WORDS:
	case VALUE_IDS:
		read_texts(session, field, request);
		return true;
	default:
		json_object_set_new(request, field->name,
		                    (field->also & ALSO_FLAG) && strcmp(text, "yes") == 0
		                        ? json_true()
		                        : json_string(text));
		return true;
	}
}

bool field_request_moment(struct session *session, const struct resource_field *field, json_t *job,
                          struct error *error)
{
	const char *text = arguments_value(session->arguments, field->option.name);
	struct buffer moment = { 0 };
	int64_t ms;
	if (!text)
		return true;
	if (strncmp(text, "now+", 4) == 0)
		text += 4;
	if (calendar_read(text_of(text), &ms)) {
		json_object_set_new(job, field->name, json_string(text));
		return true;
	}
	int64_t local_ms = quantity_local_moment(text);
	if (local_ms < 0 && !duration_read(text_of(text), DURATION_MAX_MS, &ms))
		return error_set(
		    error, ERROR_INVALID,
		    "invalid %s '%.40s': expected a time such as 2030-01-31T12:00:00Z, "
		    "2030-01-31T12:00 (local time), or from now, such as 2h30m",
		    field->option.name, text);
	calendar_print(&moment, local_ms >= 0 ? local_ms : clock_unix_ms() + ms);
	if (local_ms >= 0)
		fprintf(stderr, "%s is local time: %s\n", field->option.name, moment.data);
	json_object_set_new(job, field->name, json_string(moment.data));
	buffer_free(&moment);
	return true;
}

bool field_request(struct session *session, const struct resource *resource,
                   const struct special_field *special, json_t *request, struct error *error)
{
	for (int i = 0; i < resource->field_count; i++) {
		const struct resource_field *field = &resource->fields[i];
		const struct special_field *by = special;
		while (by && by->name && strcmp(by->name, field->name) != 0)
			by++;
		bool good = true;
		if (by && by->name)
			good = !by->read || by->read(session, field, request, error);
		else if (field->option.name)
			good = read_given(session, field, request, error);
		if (!good)
			return false;
	}
	return true;
}
