/* bulk.c - many jobs in one request: an array, or one JSON object per line */
#include <stdlib.h>

#include "api/ids.h"
#include "api/jobs.h"
#include "api/service_state.h"

/* Asks that are under way at once: enough for large transactions, and few enough that a
 * request with a million jobs takes little memory. */
enum { WINDOW = 4096, JOBS_MAX = 1000000 };

/* What became of one job. */
struct outcome {
	int64_t id, count; /* id 0: refused */
	bool repeated;
	enum error_code code;
	const char *sentence; /* in the call's arena; where it was refused */
};

struct bulk;
struct bulk_ask {
	struct ask ask; /* first: one pointer is the other */
	struct bulk *bulk;
	size_t place;
	struct bulk_ask *next;
};

/* Jobs are read as asks become free, in their order. With `all` everything is read once
 * before, and what is handed in is held until all of it was taken; then it is released, or,
 * where something was refused, cancelled. */
struct bulk {
	struct call *call;
	bool is_lines, is_all;
	struct json_scan scan; /* in the array */
	struct text rest;      /* of the lines */
	bool at_end;
	struct arena arena; /* of texts while a job is read */
	struct outcome *outcomes;
	size_t count, capacity, refused;
	bool *wants_hold; /* with `all`: the job itself said so */
	size_t hold_capacity;
	struct bulk_ask *free;
	size_t made, in_flight;
	size_t settling; /* with `all`: the next one to be released or cancelled */
};

static bool is_ndjson(struct text type)
{
	return text_starts(type, "application/x-ndjson") ||
	       text_starts(type, "application/ndjson") || text_starts(type, "application/jsonl");
}

static bool is_array(struct text body)
{
	for (size_t i = 0; i < body.size; i++)
		if (body.data[i] != ' ' && body.data[i] != '\n' && body.data[i] != '\r' &&
		    body.data[i] != '\t')
			return body.data[i] == '[';
	return false;
}

bool jobs_is_bulk(const struct call *call)
{
	struct text type = headers_get(&call->exchange->headers, "content-type");
	return (type.data && is_ndjson(type)) || is_array(call->exchange->body);
}

static struct outcome *next_outcome(struct bulk *bulk)
{
	array_reserve(bulk->outcomes, bulk->capacity, bulk->count + 1);
	struct outcome *outcome = &bulk->outcomes[bulk->count++];
	*outcome = (struct outcome){ 0 };
	return outcome;
}

static void refuse(struct bulk *bulk, size_t place, const struct error *error)
{
	struct outcome *outcome = &bulk->outcomes[place];
	outcome->code = error->code;
	outcome->sentence = arena_string(&bulk->call->ask.arena, error->text);
	bulk->refused++;
}

/* The next line that is not empty. */
static bool next_line(struct bulk *bulk, struct text *line)
{
	while (bulk->rest.size > 0) {
		const char *end = memchr(bulk->rest.data, '\n', bulk->rest.size);
		size_t size = end ? (size_t)(end - bulk->rest.data) : bulk->rest.size;
		*line = (struct text){ bulk->rest.data, size };
		bulk->rest = text_from(bulk->rest, end ? size + 1 : size);
		if (line->size > 0 && line->data[line->size - 1] == '\r')
			line->size--;
		if (text_trim(*line).size > 0)
			return true;
	}
	return false;
}

static bool read_line(struct bulk *bulk, const struct job_reading *reading, struct text line,
                      struct submit_command *submit, struct error *error)
{
	struct json_scan scan = json_scan_of(line, &bulk->arena, error);
	return job_json_read(&scan, reading, submit, error) && json_scan_end(&scan);
}

/* The element at the scan's place. One that is refused is stepped over, where that is
 * possible; where it is not, nothing behind it can be read. */
static bool read_element(struct bulk *bulk, const struct job_reading *reading,
                         struct submit_command *submit, struct error *error)
{
	struct json_scan start = bulk->scan;
	bulk->scan.error = error;
	if (job_json_read(&bulk->scan, reading, submit, error))
		return true;
	struct error broken = { 0 };
	bulk->scan = start;
	bulk->scan.error = &broken;
	if (!json_scan_skip(&bulk->scan, NULL)) {
		*error = broken;
		bulk->at_end = true;
	}
	return false;
}

/* Moves on to the next job. */
static bool next_job(struct bulk *bulk, struct text *line)
{
	if (bulk->at_end)
		return false;
	bool more = bulk->is_lines ? next_line(bulk, line) : json_scan_element(&bulk->scan);
	bulk->at_end = !more;
	return more;
}

static bool read_job(struct bulk *bulk, struct arena *arena, struct text line,
                     struct submit_command *submit, struct error *error)
{
	struct job_reading reading = job_reading_of(bulk->call, arena);
	arena_reset(&bulk->arena);
	return bulk->is_lines ? read_line(bulk, &reading, line, submit, error)
	                      : read_element(bulk, &reading, submit, error);
}

static void begin_reading(struct bulk *bulk)
{
	struct text body = bulk->call->exchange->body;
	bulk->rest = body;
	bulk->at_end = false;
	bulk->scan = json_scan_of(body, &bulk->arena, NULL);
	if (!bulk->is_lines)
		json_scan_open(&bulk->scan, JSON_KIND_ARRAY);
}

/* Answering. */

static void put_outcome(struct json_writer *json, const struct outcome *outcome)
{
	json_open_object(json, NULL);
	if (outcome->id > 0) {
		json_put_id(json, "job_id", ID_JOB, outcome->id);
		json_put_string(json, "status", "submitted");
		if (outcome->repeated)
			json_put_flag(json, "repeated", true);
		if (outcome->count > 1)
			json_put_integer(json, "count", outcome->count);
	} else {
		json_put_string(json, "status", outcome->sentence ? "refused" : "not_submitted");
		json_put_string(json, "error",
		                outcome->sentence ? outcome->sentence
		                                  : "another job of the request was refused");
		json_put_string(json, "code",
		                outcome->sentence ? error_code_name(outcome->code) : "conflict");
	}
	json_close(json);
}

static void bulk_free(struct bulk *bulk)
{
	while (bulk->free) {
		struct bulk_ask *ask = bulk->free;
		bulk->free = ask->next;
		ask_free(&ask->ask);
		free(ask);
	}
	arena_free(&bulk->arena);
	free(bulk->outcomes);
	free(bulk->wants_hold);
	free(bulk);
}

/* Where nothing was done at all, the status of the first refusal; otherwise 207 says that
 * each job has its own. */
static int status_for(const struct bulk *bulk)
{
	if (bulk->refused == 0)
		return 201;
	if (!bulk->is_all && bulk->refused < bulk->count)
		return 207;
	for (size_t i = 0; i < bulk->count; i++)
		if (bulk->outcomes[i].sentence)
			return status_of(bulk->outcomes[i].code);
	return 400;
}

static void answer(struct bulk *bulk)
{
	struct call *call = bulk->call;
	struct json_writer *json = call_object(call);
	size_t submitted = 0;
	json_open_array(json, "jobs");
	for (size_t i = 0; i < bulk->count; i++) {
		put_outcome(json, &bulk->outcomes[i]);
		submitted += bulk->outcomes[i].id > 0;
	}
	json_close(json);
	json_put_integer(json, "submitted", (int64_t)submitted);
	json_put_integer(json, "failed", (int64_t)(bulk->count - submitted));
	int status = status_for(bulk);
	if (bulk->refused > 0 && submitted == 0) {
		json_put_string(json, "error",
		                bulk->is_all
		                    ? "none of the jobs was submitted, as not all of them could be"
		                    : "none of the jobs could be submitted");
		json_put_string(json, "code", "refused");
	}
	json_close(json);
	bulk_free(bulk);
	call_answer_json(call, status);
}

/* Handing in. */

static void fill(struct bulk *bulk);
static void settle(struct bulk *bulk);

static struct bulk_ask *take_ask(struct bulk *bulk)
{
	struct bulk_ask *ask = bulk->free;
	if (ask) {
		bulk->free = ask->next;
		return ask;
	}
	if (bulk->made == WINDOW)
		return NULL;
	bulk->made++;
	ask = NEW(struct bulk_ask);
	ask->bulk = bulk;
	return ask;
}

static void give_back(struct bulk_ask *ask)
{
	struct bulk *bulk = ask->bulk;
	ask_reset(&ask->ask);
	ask->next = bulk->free;
	bulk->free = ask;
}

/* Goes on when half of the window is free, so that asks are handed in many at a time. */
static void go_on(struct bulk *bulk)
{
	if (!bulk->at_end) {
		if (bulk->in_flight <= WINDOW / 2)
			fill(bulk);
	} else if (bulk->in_flight == 0) {
		if (bulk->is_all)
			settle(bulk);
		else
			answer(bulk);
	}
}

static void submitted(struct ask *done)
{
	struct bulk_ask *ask = (struct bulk_ask *)done;
	struct bulk *bulk = ask->bulk;
	struct outcome *outcome = &bulk->outcomes[ask->place];
	if (done->ok) {
		outcome->id = done->reply_id;
		outcome->count = done->reply_count;
		outcome->repeated = done->repeated;
	} else {
		refuse(bulk, ask->place, &done->error);
	}
	give_back(ask);
	bulk->in_flight--;
	go_on(bulk);
}

static void remember_hold(struct bulk *bulk, size_t place, struct submit_command *submit)
{
	array_reserve(bulk->wants_hold, bulk->hold_capacity, place + 1);
	bulk->wants_hold[place] = submit->hold;
	submit->hold = true;
}

static void hand_in(struct bulk *bulk, struct bulk_ask *ask, struct text line)
{
	struct error error = { 0 };
	struct submit_command *submit = &ask->ask.command.submit;
	ask->place = bulk->count;
	next_outcome(bulk);
	ask->ask.command.kind = COMMAND_SUBMIT;
	if (!read_job(bulk, &ask->ask.arena, line, submit, &error)) {
		refuse(bulk, ask->place, &error);
		give_back(ask);
		return;
	}
	if (bulk->is_all)
		remember_hold(bulk, ask->place, submit);
	ask->ask.has_command = true;
	ask->ask.done = submitted;
	bulk->in_flight++;
	desk_ask(bulk->call->service->desk, &ask->ask);
}

static void fill(struct bulk *bulk)
{
	struct text line = { NULL, 0 };
	/* An answer may come before fill is over, but never within it. */
	for (;;) {
		struct bulk_ask *ask = take_ask(bulk);
		if (!ask)
			return;
		if (bulk->count >= JOBS_MAX || !next_job(bulk, &line)) {
			bulk->at_end = true;
			give_back(ask);
			break;
		}
		hand_in(bulk, ask, line);
	}
	if (bulk->in_flight == 0)
		go_on(bulk);
}

/* With `all`: what was handed in is released, or cancelled. */

static void settled(struct ask *done)
{
	struct bulk_ask *ask = (struct bulk_ask *)done;
	struct bulk *bulk = ask->bulk;
	give_back(ask);
	bulk->in_flight--;
	settle(bulk);
}

static bool needs_settling(const struct bulk *bulk, size_t place)
{
	const struct outcome *outcome = &bulk->outcomes[place];
	if (outcome->id == 0 || outcome->repeated)
		return false;
	return bulk->refused > 0 || !bulk->wants_hold[place];
}

static void settle(struct bulk *bulk)
{
	for (; bulk->settling < bulk->count; bulk->settling++) {
		if (!needs_settling(bulk, bulk->settling))
			continue;
		struct outcome *outcome = &bulk->outcomes[bulk->settling];
		for (int64_t i = 0; i < max64(outcome->count, 1); i++) {
			/* An array may be larger than the window. */
			struct bulk_ask *ask = take_ask(bulk);
			if (!ask) {
				bulk->made--;
				ask = take_ask(bulk);
			}
			ask->ask.command.kind =
			    bulk->refused > 0 ? COMMAND_CANCEL : COMMAND_RELEASE;
			ask->ask.command.id = outcome->id + i;
			ask->ask.has_command = true;
			ask->ask.done = settled;
			bulk->in_flight++;
			desk_ask(bulk->call->service->desk, &ask->ask);
		}
	}
	if (bulk->in_flight > 0)
		return;
	for (size_t i = 0; i < bulk->count && bulk->refused > 0; i++)
		if (!bulk->outcomes[i].repeated)
			bulk->outcomes[i].id = 0;
	answer(bulk);
}

/* With `all`: everything must make sense before anything is handed in. */
static bool check_all(struct bulk *bulk)
{
	struct text line = { NULL, 0 };
	struct submit_command submit;
	struct arena arena = { 0 };
	while (bulk->count < JOBS_MAX && next_job(bulk, &line)) {
		struct error error = { 0 };
		next_outcome(bulk);
		if (!read_job(bulk, &arena, line, &submit, &error))
			refuse(bulk, bulk->count - 1, &error);
		arena_reset(&arena);
	}
	arena_free(&arena);
	return bulk->refused == 0;
}

static bool read_mode(struct call *call, bool *is_all)
{
	struct text mode = query_get(&call->exchange->query, "mode");
	*is_all = mode.data && text_is(mode, "all");
	if (!mode.data || *is_all || text_is(mode, "each"))
		return true;
	call_refuse(call, 400, "invalid",
	            "mode must be all (all jobs or none) or each (every job by itself)");
	return false;
}

void jobs_submit_bulk(struct call *call)
{
	struct text type = headers_get(&call->exchange->headers, "content-type");
	bool is_all;
	if (!read_mode(call, &is_all))
		return;
	struct bulk *bulk = NEW(struct bulk);
	bulk->call = call;
	bulk->is_all = is_all;
	bulk->is_lines = type.data && is_ndjson(type) && !is_array(call->exchange->body);
	begin_reading(bulk);
	if (is_all && !check_all(bulk)) {
		answer(bulk);
		return;
	}
	if (is_all) {
		bulk->count = 0;
		begin_reading(bulk);
	}
	fill(bulk);
}
