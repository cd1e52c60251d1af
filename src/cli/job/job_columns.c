/* job_columns.c - what tables say about a job */
#include "cli/job/job_columns.h"

#include <string.h>

#include "base/size.h"
#include "cli/text/quantity.h"
#include "json/member.h"

const char *job_state(const json_t *job)
{
	const char *state = member_text(job, "state");
	return member_flag(job, "held") && strcmp(state, "pending") == 0 ? "held" : state;
}

static void print_sizes(struct buffer *to, const json_t *sizes)
{
	size_t place;
	json_t *size;
	json_array_foreach(sizes, place, size)
	{
		buffer_text(to, place > 0 ? "+" : "");
		size_print(to, json_integer_value(size));
	}
}

bool job_is_part(const json_t *job)
{
	const char *sharing = member_text(job, "gpu_sharing");
	const json_t *allocated = json_object_get(job, "allocations");
	const json_t *gpu =
	    json_array_get(json_object_get(json_array_get(allocated, 0), "gpus"), 0);

	if (*sharing)
		return strcmp(sharing, "fraction") == 0 || strcmp(sharing, "memory") == 0;
	/* A service that does not say so: its numbers tell, but for one GPU that waits. */
	return member_has(job, "gpu_fraction") ||
	       json_is_array(json_object_get(job, "gpu_memory_mb")) ||
	       (member_integer(job, "gpu_count") == 1 && member_integer(job, "gpu_memory_mb") > 0 &&
	        !member_flag(gpu, "whole"));
}

void job_print_gpus(struct buffer *to, const json_t *job)
{
	const json_t *memory = json_object_get(job, "gpu_memory_mb");
	int64_t tasks = member_integer(job, "tasks"), count = member_integer(job, "gpu_count");

	if (tasks > 1)
		buffer_print(to, "%lldx", (long long)tasks);
	if (!job_is_part(job))
		buffer_print(to, "%lld", (long long)count);
	else if (member_has(job, "gpu_fraction"))
		buffer_print(to, "%g", member_number(job, "gpu_fraction"));
	else if (json_is_array(memory))
		print_sizes(to, memory);
	else
		size_print(to, json_integer_value(memory));
}

static void print_words(struct buffer *to, const json_t *words)
{
	size_t place;
	json_t *word;
	json_array_foreach(words, place, word)
	{
		buffer_print(to, "%s%s", to->size > 0 ? " " : "", json_string_value(word));
	}
}

void job_print_command(struct buffer *to, const json_t *job)
{
	if (member_has(job, "script"))
		buffer_text(to, "(script)");
	print_words(to, json_object_get(job, "command"));
	print_words(to, json_object_get(job, "args"));
	if (to->size == 0)
		buffer_text(to, member_text(job, "image"));
}

void job_column_id(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	table_cell(table, "%s", member_text(job, "id"));
}

void job_column_name(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	if (member_has(job, "array_index"))
		table_cell(table, "%s [%lld]", member_text(job, "name"),
		           (long long)member_integer(job, "array_index"));
	else
		table_cell(table, "%s", member_text(job, "name"));
}

void job_column_tenant(struct session *session, struct table *table, const json_t *job)
{
	table_cell(table, "%s", session_tenant_name(session, member_text(job, "tenant_id")));
}

void job_column_state(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	table_coloured(table, colour_of_state(job_state(job)), "%s", job_state(job));
}

void job_column_gpus(struct session *session, struct table *table, const json_t *job)
{
	struct buffer text = { 0 };
	(void)session;
	job_print_gpus(&text, job);
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

void job_column_priority(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	table_cell(table, "%lld", (long long)member_integer(job, "priority"));
}

void job_column_submitted(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	listing_since(table, member_moment(job, "submitted_at"));
}

void job_column_node(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	table_cell(table, "%s", member_text(job, "node_name"));
}

void job_column_command(struct session *session, struct table *table, const json_t *job)
{
	struct buffer text = { 0 };
	(void)session;
	buffer_text(&text, "");
	job_print_command(&text, job);
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}
