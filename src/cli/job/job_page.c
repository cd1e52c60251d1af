/* job_page.c - all there is to say about a job */
#include "cli/job/job_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/size.h"
#include "cli/field_print.h"
#include "cli/job/job_columns.h"
#include "cli/job/job_watch.h"
#include "cli/text/quantity.h"
#include "cli/text/text_width.h"
#include "json/member.h"

enum { LABEL_COLUMNS = 14 };

/* The fields that the page shows in its own words, or that say the same as others. */
static const char *const told[] = {
	"id",
	"job_id",
	"tenant_id",
	"name",
	"state",
	"held",
	"priority",
	"gpu_sharing",
	"gpu_count",
	"gpu_memory_mb",
	"gpu_fraction",
	"cpu_cores",
	"memory_mb",
	"command",
	"args",
	"script",
	"image",
	"tasks",
	"preemptible",
	"max_runtime_minutes",
	"depends_on",
	"array_id",
	"array_index",
	"gpu_model",
	"submitted_at",
	"scheduled_at",
	"started_at",
	"completed_at",
	"preempted_count",
	"exit_code",
	"message",
	"peak_gpu_memory_mb",
	"gpu_seconds",
	"energy_joules",
	"peak_memory_mb",
	"cpu_seconds",
	"guard",
	"queue_position",
	"estimated_wait",
	"estimated_start",
	"promised_start",
	"deadline_risk",
	"reason",
	"node_name",
	"allocated_gpus",
	"allocations",
	"estimated_duration",
	"prediction_confidence",
};

/* One line: what it is about, and what there is to say. */
static void line(const struct session *session, const char *label, enum colour colour,
                 const char *text)
{
	struct buffer clean = { 0 };
	text_clean(&clean, text);
	bool coloured = session->terminal.colours && colour != COLOUR_NONE;
	printf("%-*s ", LABEL_COLUMNS - 1, label);
	if (coloured)
		printf("\033[%dm%s\033[0m\n", (int)colour, clean.data);
	else
		puts(clean.data);
	buffer_free(&clean);
}

/* Prints a labeled line from a buffer, and empties the buffer. */
static void line_of(const struct session *session, const char *label, struct buffer *text)
{
	buffer_text(text, "");
	line(session, label, COLOUR_NONE, text->data);
	buffer_clear(text);
}

static void job_print_state(const struct session *session, const json_t *job)
{
	struct buffer text = { 0 };
	buffer_text(&text, job_state(job));
	if (member_has(job, "exit_code") && member_integer(job, "exit_code") != 0)
		buffer_print(&text, ", exit code %lld",
		             (long long)member_integer(job, "exit_code"));
	if (*member_text(job, "message"))
		buffer_print(&text, ": %s", member_text(job, "message"));
	line(session, "State", colour_of_state(job_state(job)), text.data);
	buffer_free(&text);
}

static void print_asked(struct session *session, const json_t *job, struct buffer *text)
{
	job_print_gpus(text, job);
	bool is_part = job_is_part(job);
	buffer_text(text, is_part                                 ? " of a GPU"
	                  : member_integer(job, "gpu_count") == 1 ? " GPU"
	                                                          : " GPUs");
	if (!is_part && member_integer(job, "gpu_count") > 0 &&
	    member_integer(job, "gpu_memory_mb") > 0) {
		buffer_text(text, " with at least ");
		size_print(text, member_integer(job, "gpu_memory_mb"));
	}
	if (member_has(job, "gpu_model"))
		buffer_print(text, " (%s)", member_text(job, "gpu_model"));
	if (member_number(job, "cpu_cores") > 0)
		buffer_print(text, ", %g CPUs", member_number(job, "cpu_cores"));
	if (member_integer(job, "memory_mb") > 0) {
		buffer_text(text, ", ");
		size_print(text, member_integer(job, "memory_mb"));
		buffer_text(text, " of host memory");
	}
	if (member_number(job, "max_runtime_minutes") > 0) {
		buffer_text(text, ", at most ");
		duration_print(text, (int64_t)(member_number(job, "max_runtime_minutes") * 60000));
	}
	line_of(session, "Requested", text);
	buffer_print(text, "%lld, %s", (long long)member_integer(job, "priority"),
	             member_flag(job, "preemptible") ? "preemptible" : "not preemptible");
	if (member_integer(job, "preempted_count") > 0)
		buffer_print(text, ", preempted %lld time%s",
		             (long long)member_integer(job, "preempted_count"),
		             member_integer(job, "preempted_count") == 1 ? "" : "s");
	line_of(session, "Priority", text);
}

static void print_depends(const struct session *session, const json_t *job, struct buffer *text)
{
	size_t place;
	json_t *other;
	json_array_foreach(json_object_get(job, "depends_on"), place, other)
	{
		buffer_print(text, "%s%s%s", place > 0 ? ", " : "", member_text(other, "job"),
		             strcmp(member_text(other, "condition"), "any") == 0
		                 ? " (however it ends)"
		                 : "");
	}
	if (text->size > 0)
		line_of(session, "After", text);
	if (member_has(job, "array_id")) {
		buffer_print(text, "%s, index %lld", member_text(job, "array_id"),
		             (long long)member_integer(job, "array_index"));
		line_of(session, "Array", text);
	}
}

static void print_gpu(const struct session *session, const json_t *gpu)
{
	struct buffer text = { 0 };
	buffer_print(&text, "  GPU %lld  ", (long long)member_integer(gpu, "index"));
	size_print(&text, member_integer(gpu, "memory_mb"));
	buffer_text(&text, member_flag(gpu, "whole") ? " (all of it)" : " reserved");
	if (member_integer(gpu, "measured_memory_mb") > 0) {
		buffer_text(&text, ", ");
		size_print(&text, member_integer(gpu, "measured_memory_mb"));
		buffer_text(&text, " in use");
	}
	buffer_print(&text, "  %s", member_text(gpu, "uuid"));
	line_of(session, "", &text);
	buffer_free(&text);
}

static void print_placement(const struct session *session, const json_t *job)
{
	struct buffer text = { 0 };
	size_t place, part;
	json_t *task, *gpu;
	json_array_foreach(json_object_get(job, "allocations"), place, task)
	{
		if (!member_has(task, "node"))
			continue;
		buffer_print(&text, "task %lld on %s, %s", (long long)member_integer(task, "task"),
		             member_text(task, "node"), member_text(task, "phase"));
		line_of(session, "Placement", &text);
		json_array_foreach(json_object_get(task, "gpus"), part, gpu)
		    print_gpu(session, gpu);
	}
	if (text.capacity == 0 && *member_text(job, "node_name"))
		line(session, "Node", COLOUR_NONE, member_text(job, "node_name"));
	buffer_free(&text);
}

static void add_memory(struct buffer *text, const char *before, int64_t mib)
{
	buffer_print(text, "%s%s", text->size > 0 ? ", " : "", before);
	size_print(text, mib);
}

/* The GPU memory that it used, of what it reserved, and its refused allocations. */
static void print_gpu_memory(const struct session *session, const json_t *job, struct buffer *text)
{
	const json_t *guard = json_object_get(job, "guard");
	if (member_integer(guard, "limit_mb") > 0)
		add_memory(text, "limit ", member_integer(guard, "limit_mb"));
	if (member_integer(job, "peak_gpu_memory_mb") > 0)
		add_memory(text, "peak ", member_integer(job, "peak_gpu_memory_mb"));
	int64_t refusals = member_integer(guard, "refusals");
	if (refusals > 0)
		buffer_print(text, ", refused more %lld time%s", (long long)refusals,
		             refusals == 1 ? "" : "s");
	if (refusals > 0 && member_integer(guard, "last_refused_mb") > 0) {
		buffer_text(text, " (the last time ");
		size_print(text, member_integer(guard, "last_refused_mb"));
		buffer_text(text, ")");
	}
	if (member_flag(guard, "unguarded"))
		buffer_print(text, "%sa process of it runs without the guard",
		             text->size > 0 ? ", " : "");
	if (text->size > 0)
		line_of(session, "GPU memory", text);
}

static void print_use(const struct session *session, const json_t *job, struct buffer *text)
{
	if (member_number(job, "gpu_seconds") > 0) {
		duration_print(text, (int64_t)(member_number(job, "gpu_seconds") * 1000));
		buffer_text(text, " of GPU time");
	}
	if (member_number(job, "energy_joules") > 0)
		buffer_print(text, "%s%.3g Wh", text->size > 0 ? ", " : "",
		             member_number(job, "energy_joules") / 3600);
	if (member_number(job, "cpu_seconds") > 0) {
		buffer_text(text, text->size > 0 ? ", " : "");
		duration_print(text, (int64_t)(member_number(job, "cpu_seconds") * 1000));
		buffer_text(text, " of processor time");
	}
	if (member_integer(job, "peak_memory_mb") > 0) {
		add_memory(text, "", member_integer(job, "peak_memory_mb"));
		buffer_text(text, " of host memory at most");
	}
	if (text->size > 0)
		line_of(session, "Used", text);
}

static bool is_told(const char *name)
{
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (strcmp(told[i], name) == 0)
			return true;
	return false;
}

/* True if a value is its field's default, so that it says nothing. */
static bool is_initial(const struct resource_field *field, const json_t *value)
{
	if (json_is_false(value) || (json_is_string(value) && !*json_string_value(value)))
		return true;
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	bool same = text && field->initial && strcmp(text, field->initial) == 0;
	free(text);
	return same;
}

/* All other fields that have something to say, by their table. */
static void print_others(const struct session *session, const json_t *job, struct buffer *text)
{
	for (int i = 0; i < job_resource.field_count; i++) {
		const struct resource_field *field = &job_resource.fields[i];
		const json_t *value = json_object_get(job, field->name);
		if (!value || is_told(field->name) || is_initial(field, value))
			continue;
		field_print(text, field, value);
		if (text->size > 0)
			line_of(session, field->label, text);
	}
}

/* What happened, in words: 'started', 'task 3 ended'. */
static void print_event(struct buffer *text, const json_t *event)
{
	const char *type = member_text(event, "type");
	if (strncmp(type, "task_", 5) == 0) {
		buffer_print(text, "task %lld ", (long long)member_integer(event, "task"));
		type += 5;
	} else if (strncmp(type, "job_", 4) == 0) {
		type += 4;
	}
	for (; *type; type++)
		buffer_bytes(text, *type == '_' ? " " : type, 1);
	buffer_text(text, "");
}

static void print_timeline(const struct session *session, const json_t *job, const json_t *events)
{
	struct buffer text = { 0 };
	size_t place;
	json_t *event;
	quantity_print_moment(&text, member_moment(job, "submitted_at"));
	buffer_text(&text, "  submitted");
	line_of(session, "Timeline", &text);
	json_array_foreach(events, place, event)
	{
		const char *type = member_text(event, "type");
		if (strcmp(type, "job_submitted") == 0)
			continue;
		quantity_print_moment(&text, member_moment(event, "time"));
		buffer_text(&text, "  ");
		print_event(&text, event);
		if (*member_text(event, "node"))
			buffer_print(&text, " on %s", member_text(event, "node"));
		if (member_has(event, "exit_code"))
			buffer_print(&text, " with %lld",
			             (long long)member_integer(event, "exit_code"));
		line_of(session, "", &text);
	}
	buffer_free(&text);
}

static void print_wait(const struct session *session, const json_t *job, struct buffer *text)
{
	if (!member_has(job, "queue_position"))
		return;
	buffer_print(text, "%lld in the queue", (long long)member_integer(job, "queue_position"));
	if (member_has(job, "estimated_start")) {
		buffer_text(text, ", expected to start ");
		quantity_print_moment(text, member_moment(job, "estimated_start"));
		buffer_print(text, " (in %s)", member_text(job, "estimated_wait"));
	}
	if (member_has(job, "promised_start")) {
		buffer_text(text, ", promised by ");
		quantity_print_moment(text, member_moment(job, "promised_start"));
	}
	line_of(session, "Position", text);
}

/* Whether a task ran twice. */
static bool has_earlier_runs(const json_t *runs)
{
	size_t place;
	json_t *run;
	json_array_foreach(runs, place, run)
	{
		if (member_integer(run, "attempt") > 1)
			return true;
	}
	return false;
}

/* Each run, where there was more than one of a task. */
static void print_runs(const struct session *session, const json_t *runs)
{
	struct buffer text = { 0 };
	const char *label = "Runs";
	size_t place;
	json_t *run;
	if (!has_earlier_runs(runs))
		return;
	json_array_foreach(runs, place, run)
	{
		quantity_print_moment(&text, member_moment(run, "began_at"));
		buffer_print(&text, "  task %lld", (long long)member_integer(run, "task"));
		if (member_has(run, "attempt"))
			buffer_print(&text, ", run %lld",
			             (long long)member_integer(run, "attempt"));
		if (*member_text(run, "node"))
			buffer_print(&text, " on %s", member_text(run, "node"));
		if (member_has(run, "ended_at")) {
			buffer_text(&text, ", ");
			duration_print(&text, member_moment(run, "ended_at") -
			                          member_moment(run, "began_at"));
		}
		buffer_text(&text, ": ");
		const char *ending =
		    member_has(run, "ended_at") ? member_text(run, "ending") : "running";
		for (const char *word = ending; *word; word++)
			buffer_bytes(&text, *word == '_' ? " " : word, 1);
		line_of(session, label, &text);
		label = "";
	}
	buffer_free(&text);
}

void job_page_print(struct session *session, const json_t *job, const json_t *events,
                    const json_t *why, const json_t *runs)
{
	struct buffer text = { 0 };
	const char *reason = json_string_value(json_array_get(why, 0));

	buffer_print(&text, "%s %s", member_text(job, "id"), member_text(job, "name"));
	line_of(session, "Job", &text);
	job_print_state(session, job);
	line(session, "Tenant", COLOUR_NONE,
	     session_tenant_name(session, member_text(job, "tenant_id")));
	if (*member_text(job, "image"))
		line(session, "Image", COLOUR_NONE, member_text(job, "image"));
	job_print_command(&text, job);
	line_of(session, "Command", &text);
	print_asked(session, job, &text);
	print_depends(session, job, &text);
	print_others(session, job, &text);
	print_wait(session, job, &text);
	/* The state of a finished job has already said it. */
	if (reason && !job_is_over(member_text(job, "state")))
		line(session, "Why", COLOUR_NONE, reason);
	print_placement(session, job);
	print_gpu_memory(session, job, &text);
	print_use(session, job, &text);
	print_runs(session, runs);
	print_timeline(session, job, events);
	buffer_free(&text);
}
