/* job_session_request.c - what is asked for in a request about interactive sessions */
#include "api/job/job_session_request.h"

#include <string.h>

#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "base/memory.h"
#include "channel/frame.h"
#include "json/member.h"

enum {
	COMMAND_WORDS_MAX = 1024,
	COMMAND_BYTES_MAX = 64 << 10,
	VARIABLES_MAX = 16,
	VARIABLE_BYTES_MAX = 256,
	PORT_MAX = 65535,
};

struct session_request *session_request_new(struct request *request)
{
	struct session_request *wanted = arena_alloc(&request->engine.arena, sizeof(*wanted));

	*wanted = (struct session_request){ .detail = "" };
	wanted->options.columns = 80;
	wanted->options.rows = 24;
	wanted->options.offset = -1;
	wanted->options.idle_ms = request->service->settings.session_idle_ms;
	request->state = wanted;
	return wanted;
}

/* The words of the command, copied. */
static bool read_command(struct request *request, struct json_reader *reader,
                         struct session_request *wanted)
{
	const json_t *words = json_need_array(reader, "command", COMMAND_WORDS_MAX);
	size_t count = json_array_size(words), bytes = 0;
	char **command = arena_alloc(&request->engine.arena, (count + 1) * sizeof(*command));

	for (size_t i = 0; i < count; i++) {
		const char *word = json_string_value(json_array_get(words, i));
		bytes += word ? strlen(word) : 0;
		if (!word || bytes > COMMAND_BYTES_MAX)
			return json_fail(reader, "command", "must be texts of at most %d bytes",
			                 COMMAND_BYTES_MAX);
		command[i] = arena_string(&request->engine.arena, word);
	}
	if (words && (count == 0 || !*command[0]))
		return json_fail(reader, "command", "must name a program");
	wanted->options.command = command;
	wanted->options.command_count = count;
	wanted->detail = count > 0 ? command[0] : "";
	return words != NULL;
}

static bool read_environment(struct request *request, struct json_reader *reader,
                             struct session_request *wanted)
{
	bool given = json_get_object(reader, "environment") != NULL;
	json_t *object = given ? json_object_get(reader->object, "environment") : NULL;
	char **list = arena_alloc(&request->engine.arena, VARIABLES_MAX * sizeof(*list));
	struct buffer text = { 0 };
	const char *name;
	json_t *value;
	size_t count = 0;
	bool good = true;

	if (json_object_size(object) > VARIABLES_MAX)
		return json_fail(reader, "environment", "may have %d members", VARIABLES_MAX);
	json_object_foreach(object, name, value)
	{
		const char *set = json_string_value(value);
		good = good && set && *name && !strchr(name, '=') &&
		       strlen(name) + strlen(set) < VARIABLE_BYTES_MAX;
		if (!good)
			break;
		buffer_clear(&text);
		buffer_print(&text, "%s=%s", name, set);
		list[count++] = arena_string(&request->engine.arena, text.data);
	}
	buffer_free(&text);
	wanted->options.environment = list;
	wanted->options.environment_count = count;
	return good || json_fail(reader, "environment", "has names with texts of at most %d bytes",
	                         VARIABLE_BYTES_MAX);
}

bool session_request_body(struct request *request, struct session_request *wanted)
{
	static const char *const known[] = { "task", "command",     "terminal", "columns",
		                             "rows", "environment", NULL };
	struct error error = { 0 };
	json_t *document = json_read(request->exchange->body, NULL, &error);
	struct json_reader reader = json_reader_of(document, "", &error);
	struct agents_channel_options *options = &wanted->options;

	if (document) {
		wanted->task = json_get_integer(&reader, "task", 0, TASKS_MAX - 1, 0);
		options->terminal = json_get_flag(&reader, "terminal", false);
		options->columns = json_get_integer(&reader, "columns", 1, FRAME_SIZE_MAX, 80);
		options->rows = json_get_integer(&reader, "rows", 1, FRAME_SIZE_MAX, 24);
	}
	bool good = document && read_command(request, &reader, wanted) &&
	            read_environment(request, &reader, wanted) && json_reader_end(&reader, known);
	json_decref(document);
	if (!good)
		request_fail(request, &error);
	return good;
}

static bool is_session_id(struct text text)
{
	bool good = text.size > 0 && text.size <= SESSION_ID_BYTES;

	for (size_t i = 0; good && i < text.size; i++)
		good = (text.data[i] >= 'a' && text.data[i] <= 'z') ||
		       (text.data[i] >= '0' && text.data[i] <= '9');
	return good;
}

bool session_request_query(struct request *request, struct session_request *wanted)
{
	const struct query *query = &request->exchange->query;
	struct text id = request->exchange->segments.count > 5 ? request_segment(request, 5)
	                                                       : (struct text){ NULL, 0 };
	struct error error = { 0 };

	if (!query_integer(query, "task", 0, TASKS_MAX - 1, 0, &wanted->task, &error) ||
	    !query_integer(query, "offset", 0, INT64_MAX / 4, -1, &wanted->options.offset,
	                   &error) ||
	    !query_integer(query, "port", 1, PORT_MAX, 0, &wanted->options.port, &error)) {
		request_fail(request, &error);
		return false;
	}
	if (id.data && !is_session_id(id)) {
		request_unknown(request, "session", id);
		return false;
	}
	if (!id.data && wanted->options.port == 0) {
		request_refuse(request, 400, "invalid", "port is missing");
		return false;
	}
	if (id.data)
		memcpy(wanted->id, id.data, id.size);
	if (request->exchange->is_websocket)
		return true;
	request_header(request, "upgrade", TEXT("websocket"));
	request_refuse(request, 426, "upgrade_required",
	               "this is a WebSocket: connect to it with ws:// or wss://");
	return false;
}

struct session_place {
	int64_t tenant_id;
	bool is_own; /* the job is of who asks */
};

static bool find_session_place(struct request *request, struct session_request *wanted,
                               struct session_place *place)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	const char *user = identity_user(&request->identity);
	struct catalogue_job job;

	catalogue_lock(catalogue);
	bool found = catalogue_job(catalogue, wanted->job_id, &job);
	if (found) {
		place->tenant_id = job.job->tenant_id;
		place->is_own = *user && strcmp(job.job->user, user) == 0;
		wanted->options.reservation_id =
		    job_place_find(catalogue, &job, wanted->task, wanted->node);
		wanted->options.node = wanted->node;
	}
	catalogue_unlock(catalogue);
	return found;
}

bool session_request_place(struct request *request, struct session_request *wanted)
{
	struct text segment = request_segment(request, 3);
	struct session_place place = { 0 };
	struct buffer detail = { 0 };

	if (!id_read(segment, ID_JOB, &wanted->job_id) ||
	    !find_session_place(request, wanted, &place) ||
	    !roster_may_see(&request->service->roster, &request->identity, place.tenant_id)) {
		request_unknown(request, "job", segment);
		return false;
	}
	if (request->identity.role != ROLE_ADMIN && !place.is_own) {
		request_refuse(request, 403, "forbidden",
		               "only the user who submitted job-%lld, and administrators, may work "
		               "in it",
		               (long long)wanted->job_id);
		return false;
	}
	if (wanted->options.reservation_id == 0) {
		request_refuse(request, 409, "conflict", "task %lld is not running",
		               (long long)wanted->task);
		return false;
	}
	buffer_print(&detail, "task %lld%s%s", (long long)wanted->task, *wanted->detail ? ": " : "",
	             wanted->detail);
	if (wanted->options.port > 0)
		buffer_print(&detail, ", port %lld", (long long)wanted->options.port);
	wanted->detail = arena_string(&request->engine.arena, detail.data);
	wanted->object = arena_string(&request->engine.arena, request->exchange->path.data);
	buffer_free(&detail);
	return true;
}

const char *session_request_protocol(struct request *request)
{
	struct text list = headers_get(&request->exchange->headers, "sec-websocket-protocol"), item;
	struct text chosen = { NULL, 0 };

	while (list.data && text_next(&list, ',', &item))
		if (item.size > 0 && (!chosen.data || text_starts(chosen, "bearer.")))
			chosen = item;
	if (!chosen.data)
		return NULL;
	char *copy = arena_alloc(&request->engine.arena, chosen.size + 1);
	memcpy(copy, chosen.data, chosen.size);
	copy[chosen.size] = '\0';
	return copy;
}

enum error_code session_refusal_code(int code)
{
	bool known = code >= ERROR_INVALID && code <= ERROR_UNAVAILABLE;

	return known ? (enum error_code)code : ERROR_UNAVAILABLE;
}
