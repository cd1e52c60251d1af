/* bulk.c - many jobs in one request: an array, or one JSON object per line */
#include <stdio.h>
#include <stdlib.h>

#include "api/job/jobs.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "base/hash.h"

/* WINDOW: parts under way at once: enough for large transactions, and few enough that a request
 * with a million jobs takes little memory. TOGETHER_MAX: jobs, elements of arrays
 * included, that are one transaction, during which nobody else is served. REFUSED_MAX: jobs
 * that may be refused; a request of nothing else would make an answer many times its size. */
enum { WINDOW = 4096, JOBS_MAX = 1000000, TOGETHER_MAX = 100000, REFUSED_MAX = 10000 };

/* What became of one job. */
struct outcome {
	int64_t id, count; /* id 0: refused */
	bool repeated;
	enum error_code code;
	const char *sentence; /* in the request's arena; where it was refused */
};

struct bulk;
/* A job on its way to the core. It has no client, identity or answer of its own. */
struct bulk_part {
	struct engine_request engine; /* first: one pointer is the other */
	struct bulk *bulk;
	size_t place;
	struct bulk_part *next; /* that is submitted together with it */
};

/* Jobs are read in order, as parts become free. With `all`, every job is read before the first is
 * handed in, and all are handed in together. */
struct bulk {
	struct request *request;
	bool is_lines, is_all;
	struct text key;       /* of the request; data NULL: none */
	int64_t key_hash;      /* of its body, where there is a key */
	struct json_scan scan; /* in the array */
	struct text rest;      /* of the lines */
	bool at_end;
	struct arena arena; /* of texts while a job is read */
	struct outcome *outcomes;
	size_t count, capacity, refused;
	struct engine_pool parts; /* of struct bulk_part: freed with the bulk */
	size_t in_flight;
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

bool jobs_is_bulk(const struct request *request)
{
	struct text type = headers_get(&request->exchange->headers, "content-type");
	return (type.data && is_ndjson(type)) || is_array(request->exchange->body);
}

static struct outcome *next_outcome(struct bulk *bulk)
{
	array_reserve(bulk->outcomes, bulk->capacity, bulk->count + 1);
	struct outcome *outcome = &bulk->outcomes[bulk->count++];
	*outcome = (struct outcome){ 0 };
	return outcome;
}

static void bulk_refuse(struct bulk *bulk, size_t place, const struct error *error)
{
	struct outcome *outcome = &bulk->outcomes[place];
	outcome->code = error->code;
	outcome->sentence = arena_string(&bulk->request->engine.arena, error->text);
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

static bool bulk_read_line(struct bulk *bulk, const struct job_reading *reading, struct text line,
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
	struct job_reading reading = job_reading_of(bulk->request, arena);
	char key[JOB_KEY_BYTES_MAX + 24];
	arena_reset(&bulk->arena);
	if (bulk->key.data) {
		int size = snprintf(key, sizeof(key), "%.*s#%zu", (int)bulk->key.size,
		                    bulk->key.data, bulk->count - 1);
		reading.key = (struct text){ key, (size_t)size };
		reading.key_hash = bulk->key_hash;
	}
	return bulk->is_lines ? bulk_read_line(bulk, &reading, line, submit, error)
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
	struct text body = bulk->request->exchange->body;
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
	engine_pool_free(&bulk->parts, NULL);
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

static void bulk_answer(struct bulk *bulk)
{
	struct request *request = bulk->request;
	struct json_writer *json = request_object(request);
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
	request_answer_json(request, status);
}

/* Handing in. */

static void bulk_fill(struct bulk *bulk);

/* NULL: enough are under way. */
static struct bulk_part *bulk_take_part(struct bulk *bulk)
{
	if (!bulk->parts.spare && bulk->parts.made == WINDOW && !bulk->is_all)
		return NULL;
	struct bulk_part *part = engine_pool_take(&bulk->parts);
	part->bulk = bulk;
	return part;
}

static void bulk_give_back(struct bulk_part *part)
{
	engine_pool_give_back(&part->bulk->parts, part);
}

/* Continues when half of the window is free, so that many parts are handed in at a time. */
static void bulk_go_on(struct bulk *bulk)
{
	if (!bulk->at_end) {
		if (bulk->in_flight <= WINDOW / 2)
			bulk_fill(bulk);
	} else if (bulk->in_flight == 0) {
		bulk_answer(bulk);
	}
}

static void submitted(struct engine_request *done)
{
	struct bulk_part *part = (struct bulk_part *)done;
	struct bulk *bulk = part->bulk;
	struct outcome *outcome = &bulk->outcomes[part->place];
	if (done->ok) {
		outcome->id = done->reply_id;
		outcome->count = done->reply_count;
		outcome->repeated = done->repeated;
	} else if (done->error.code != ERROR_NONE) {
		bulk_refuse(bulk, part->place, &done->error);
	}
	bulk_give_back(part);
	bulk->in_flight--;
	bulk_go_on(bulk);
}

/* Reads the next job into the engine request. One that is refused has its outcome, and the engine
 * request is given back. */
static bool prepare(struct bulk *bulk, struct bulk_part *part, struct arena *arena,
                    struct text line)
{
	struct error error = { 0 };
	part->place = bulk->count;
	next_outcome(bulk);
	part->engine.command.kind = COMMAND_SUBMIT;
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
	} else if (read_job(bulk, arena, line, &part->engine.command.submit, &error)) {
		part->engine.has_command = true;
		part->engine.done = submitted;
		return true;
	}
	bulk_refuse(bulk, part->place, &error);
	bulk_give_back(part);
	return false;
}

static void bulk_fill(struct bulk *bulk)
{
	struct text line = { NULL, 0 };
	/* An answer may come before fill returns, but never within it. */
	for (;;) {
		struct bulk_part *part = bulk_take_part(bulk);
		if (!part)
			return;
		if (!next_job(bulk, &line)) {
			bulk_give_back(part);
			break;
		}
		if (!prepare(bulk, part, &part->engine.arena, line))
			continue;
		bulk->in_flight++;
		engine_port_send(bulk->request->service->port, &part->engine);
	}
	if (bulk->in_flight == 0)
		bulk_go_on(bulk);
}

/* With `all`. */

/* Hands in all of them, the first for the others. */
static void hand_in(struct bulk *bulk, struct bulk_part *first)
{
	for (struct bulk_part *part = first; part; part = part->next) {
		part->engine.together = part->next ? &part->next->engine : NULL;
		bulk->in_flight++;
	}
	engine_port_send(bulk->request->service->port, &first->engine);
}

static void free_parts(struct bulk_part *part)
{
	while (part) {
		struct bulk_part *next = part->next;
		bulk_give_back(part);
		part = next;
	}
}

/* Everything must make sense before anything is handed in. */
static void submit_all(struct bulk *bulk)
{
	struct text line = { NULL, 0 };
	struct bulk_part *first = NULL, **end = &first;
	int64_t jobs = 0;
	while (jobs <= TOGETHER_MAX && next_job(bulk, &line)) {
		struct bulk_part *part = bulk_take_part(bulk);
		if (!prepare(bulk, part, &bulk->together, line)) {
			jobs++;
			continue;
		}
		jobs += submit_count(&part->engine.command.submit);
		part->next = NULL;
		*end = part;
		end = &part->next;
	}
	if (jobs <= TOGETHER_MAX && bulk->refused == 0 && first) {
		hand_in(bulk, first);
		return;
	}
	free_parts(first);
	if (jobs <= TOGETHER_MAX) {
		bulk_answer(bulk);
		return;
	}
	struct request *request = bulk->request;
	bulk_free(bulk);
	request_refuse(request, 413, "too_large",
	               "mode=all takes at most %d jobs at once: send them in parts", TOGETHER_MAX);
}

static bool read_mode(struct request *request, bool *is_all)
{
	struct text mode = query_get(&request->exchange->query, "mode");
	*is_all = mode.data && text_is(mode, "all");
	if (!mode.data || *is_all || text_is(mode, "each"))
		return true;
	request_refuse(request, 400, "invalid",
	               "mode must be all (all jobs or none) or each (every job by itself)");
	return false;
}

void jobs_submit_bulk(struct request *request)
{
	struct text type = headers_get(&request->exchange->headers, "content-type"), key;
	struct error error = { 0 };
	bool is_all;
	if (!read_mode(request, &is_all))
		return;
	if (!jobs_read_key(request, &key, &error)) {
		request_fail(request, &error);
		return;
	}
	struct bulk *bulk = NEW(struct bulk);
	bulk->request = request;
	bulk->parts.size = sizeof(struct bulk_part);
	bulk->is_all = is_all;
	bulk->is_lines = type.data && is_ndjson(type) && !is_array(request->exchange->body);
	if (key.size > 0) {
		bulk->key = key;
		bulk->key_hash = hash_of(request->exchange->body);
	}
	begin_reading(bulk);
	if (is_all)
		submit_all(bulk);
	else
		bulk_fill(bulk);
}
