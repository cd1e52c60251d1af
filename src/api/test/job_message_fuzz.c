/* job_message_fuzz.c - a job by protobuf becomes JSON that REST reads, and any JSON a message */
#include <stdint.h>

#include "api/job/job_json.h"
#include "api/text/protobuf.h"
#include "api/text/resource_message.h"
#include "scheduler.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a client submits: refused with a sentence, or read by the rules of REST. */
static void job_message_submit(struct text bytes, struct arena *arena)
{
	const ProtobufCMessage *message =
	    protobuf_read(&scheduler__submit_job_request__descriptor, bytes, arena);
	struct buffer buffer = { 0 }, payload = { 0 };
	struct json_writer json = json_writer_to(&buffer);
	struct error error = { 0 };
	struct roster roster = { 0 };
	struct identity identity = { 0 };
	struct submit_command command;
	struct job_reading reading = { .arena = arena,
		                       .buffer = &payload,
		                       .roster = &roster,
		                       .identity = &identity,
		                       .node_gpus = 8 };

	if (!message)
		return;
	roster_put(&roster, &(struct tenant_record){ .id = 1, .name = "lab" });
	if (resource_message_read(&job_resource, message, &json, &error)) {
		struct text text = { buffer.data, buffer.size };
		struct json_scan scan = json_scan_of(text, arena, &error);
		/* A map of protobuf may have a name twice, which REST refuses. */
		INVARIANT((json_scan_skip(&scan, NULL) && json_scan_end(&scan)) ||
		          strstr(error.text, "is there twice"));
		error_clear(&error);
		scan = json_scan_of(text, arena, &error);
		bool is_read = job_json_read(&scan, &reading, &command, &error);
		INVARIANT(is_read == (error.code == ERROR_NONE));
	}
	INVARIANT(error.code == ERROR_NONE || error.text[0]);
	roster_free(&roster);
	buffer_free(&payload);
	buffer_free(&buffer);
}

/* What a stored job might show, whatever is in its payload. */
static void job_message_show(struct text text, struct arena *arena)
{
	struct error error = { 0 };
	struct json_scan scan = json_scan_of(text, arena, &error);
	const ProtobufCMessage *job =
	    resource_message_write(&job_resource, &scheduler__job__descriptor, &scan, arena);

	if (job)
		INVARIANT(
		    protobuf_read(&scheduler__job__descriptor, protobuf_write(job, arena), arena));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };

	if (size == 0)
		return 0;
	struct text rest = { (const char *)data + 1, size - 1 };
	if (data[0] == 'J')
		job_message_show(rest, &arena);
	else
		job_message_submit(rest, &arena);
	arena_free(&arena);
	return 0;
}
