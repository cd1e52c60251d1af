/* bulk.c - many jobs in one request: an array, or one JSON object per line */
#include <stdio.h>
#include <stdlib.h>

#include "api/job/jobs.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "base/hash.h"

/* WINDOW: asks that are under way at once: enough for large transactions, and few enough that
 * a request with a million jobs takes little memory. TOGETHER_MAX: jobs, elements of arrays
 * included, that are one transaction, during which nobody else is served. REFUSED_MAX: jobs
 * that may be refused; a request of nothing else would make an answer many times its size. */
enum { WINDOW = 4096, JOBS_MAX = 1000000, TOGETHER_MAX = 100000, REFUSED_MAX = 10000 };

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

/* Jobs are read as asks become free, in their order. With `all` everything is read before
 * anything is handed in, and then all of it together. */
struct bulk {
	struct call *call;
	bool is_lines, is_all;
	struct text key;       /* of the request; data NULL: none */
	int64_t key_hash;      /* of its body, where there is a key */
	struct json_scan scan; /* in the array */
	struct text rest;      /* of the lines */
	bool at_end;
	struct arena arena; /* of texts while a job is read */
	struct outcome *outcomes;
	size_t count, capacity, refused;
	struct bulk_ask *free;
	size_t made, in_flight;
	struct arena together; /* with `all`: of what the commands point to */
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

/* Reads the job that was begun last. Its key is that of the request and its place there, so
 * that a request which was done in part is completed when it comes again. */
static bool read_job(struct bulk *bulk, struct arena *arena, struct text line,
                     struct submit_command *submit, struct error *error)
{
	struct job_reading reading = job_reading_of(bulk->call, arena);
	char key[JOB_KEY_BYTES_MAX + 24];
	arena_reset(&bulk->arena);
	if (bulk->key.data) {
		int size = snprintf(key, sizeof(key), "%.*s#%zu", (int)bulk->key.size,
		                    bulk->key.data, bulk->count - 1);
		reading.key = (struct text){ key, (size_t)size };
		reading.key_hash = bulk->key_hash;
	}
	return bulk->is_lines ? read_line(bulk, &reading, line, submit, error)
	                      : read_element(bulk, &reading, submit, error);
}

/* Never 0. */
static int64_t hash_of(struct text body)
{
	int64_t hash = (int64_t)hash_bytes(body.data, body.size);
	return hash != 0 ? hash : 1;
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
		memory_unpoison(ask, sizeof(*ask));
		bulk->free = ask->next;
		ask_free(&ask->ask);
		free(ask);
	}
	arena_free(&bulk->arena);
	arena_free(&bulk->together);
	free(bulk->outcomes);
	free(bulk);
}

/* Where nothing was done at all, the status of the first refusal; otherwise 207 says that
 * each job has its own. */
static int status_for(const struct bulk *bulk, size_t repeated)
{
	if (bulk->refused == 0)
		return repeated > 0 && repeated == bulk->count ? 200 : 201;
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
	size_t submitted = 0, repeated = 0;
	json_open_array(json, "jobs");
	for (size_t i = 0; i < bulk->count; i++) {
		put_outcome(json, &bulk->outcomes[i]);
		submitted += bulk->outcomes[i].id > 0;
		repeated += bulk->outcomes[i].repeated;
	}
	json_close(json);
	json_put_integer(json, "submitted", (int64_t)submitted);
	json_put_integer(json, "failed", (int64_t)(bulk->count - submitted));
	int status = status_for(bulk, repeated);
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

static struct bulk_ask *take_ask(struct bulk *bulk)
{
	struct bulk_ask *ask = bulk->free;
	if (ask) {
		memory_unpoison(ask, sizeof(*ask));
		bulk->free = ask->next;
		return ask;
	}
	if (bulk->made == WINDOW && !bulk->is_all)
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
	memory_poison(ask, sizeof(*ask));
}

/* Continues when half of the window is free, so that asks are handed in many at a time. */
static void go_on(struct bulk *bulk)
{
	if (!bulk->at_end) {
		if (bulk->in_flight <= WINDOW / 2)
			fill(bulk);
	} else if (bulk->in_flight == 0) {
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
	} else if (done->error.code != ERROR_NONE) {
		refuse(bulk, ask->place, &done->error);
	}
	give_back(ask);
	bulk->in_flight--;
	go_on(bulk);
}

/* Reads the next job into the ask. One that is refused has its outcome, and the ask is given
 * back. */
static bool prepare(struct bulk *bulk, struct bulk_ask *ask, struct arena *arena, struct text line)
{
	struct error error = { 0 };
	ask->place = bulk->count;
	next_outcome(bulk);
	ask->ask.command.kind = COMMAND_SUBMIT;
	if (bulk->count > JOBS_MAX) {
		bulk->at_end = true;
		error_set(&error, ERROR_INVALID,
		          "a request has at most %d jobs: this one and those behind it were not "
		          "looked at",
		          JOBS_MAX);
	} else if (bulk->refused >= REFUSED_MAX) {
		bulk->at_end = true;
		error_set(&error, ERROR_INVALID,
		          "%d jobs of this request were rejected: this one and those after it were "
		          "not read",
		          REFUSED_MAX);
	} else if (read_job(bulk, arena, line, &ask->ask.command.submit, &error)) {
		ask->ask.has_command = true;
		ask->ask.done = submitted;
		return true;
	}
	refuse(bulk, ask->place, &error);
	give_back(ask);
	return false;
}

static void fill(struct bulk *bulk)
{
	struct text line = { NULL, 0 };
	/* An answer may come before fill returns, but never within it. */
	for (;;) {
		struct bulk_ask *ask = take_ask(bulk);
		if (!ask)
			return;
		if (!next_job(bulk, &line)) {
			give_back(ask);
			break;
		}
		if (!prepare(bulk, ask, &ask->ask.arena, line))
			continue;
		bulk->in_flight++;
		desk_ask(bulk->call->service->desk, &ask->ask);
	}
	if (bulk->in_flight == 0)
		go_on(bulk);
}

/* With `all`. */

/* Jobs that it makes, as far as that is known before it is judged. */
static int64_t jobs_of(const struct submit_command *submit)
{
	return submit->array_to > 0 ? max64(submit->array_to - submit->array_from + 1, 1) : 1;
}

/* Hands in all of them, the first for the others. */
static void hand_in(struct bulk *bulk, struct bulk_ask *first)
{
	for (struct bulk_ask *ask = first; ask; ask = ask->next) {
		ask->ask.together = ask->next ? &ask->next->ask : NULL;
		bulk->in_flight++;
	}
	desk_ask(bulk->call->service->desk, &first->ask);
}

static void free_asks(struct bulk_ask *ask)
{
	while (ask) {
		struct bulk_ask *next = ask->next;
		give_back(ask);
		ask = next;
	}
}

/* Everything must make sense before anything is handed in. */
static void submit_all(struct bulk *bulk)
{
	struct text line = { NULL, 0 };
	struct bulk_ask *first = NULL, **end = &first;
	int64_t jobs = 0;
	while (jobs <= TOGETHER_MAX && next_job(bulk, &line)) {
		struct bulk_ask *ask = take_ask(bulk);
		if (!prepare(bulk, ask, &bulk->together, line)) {
			jobs++;
			continue;
		}
		jobs += jobs_of(&ask->ask.command.submit);
		ask->next = NULL;
		*end = ask;
		end = &ask->next;
	}
	if (jobs <= TOGETHER_MAX && bulk->refused == 0 && first) {
		hand_in(bulk, first);
		return;
	}
	free_asks(first);
	if (jobs <= TOGETHER_MAX) {
		answer(bulk);
		return;
	}
	struct call *call = bulk->call;
	bulk_free(bulk);
	call_refuse(call, 413, "too_large",
	            "mode=all takes at most %d jobs at once: send them in parts", TOGETHER_MAX);
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
	struct text type = headers_get(&call->exchange->headers, "content-type"), key;
	struct error error = { 0 };
	bool is_all;
	if (!read_mode(call, &is_all))
		return;
	if (!jobs_read_key(call, &key, &error)) {
		call_fail(call, &error);
		return;
	}
	struct bulk *bulk = NEW(struct bulk);
	bulk->call = call;
	bulk->is_all = is_all;
	bulk->is_lines = type.data && is_ndjson(type) && !is_array(call->exchange->body);
	if (key.size > 0) {
		bulk->key = key;
		bulk->key_hash = hash_of(call->exchange->body);
	}
	begin_reading(bulk);
	if (is_all)
		submit_all(bulk);
	else
		fill(bulk);
}
