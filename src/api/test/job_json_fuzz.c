/* job_json_fuzz.c - a job is refused with a sentence, or becomes a command and JSON again */
#include <stdint.h>

#include "api/job/job_json.h"
#include "api/job/job_payload.h"
#include "json/json_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_payload(const char *payload, struct arena *arena)
{
	struct error error = { 0 };
	struct buffer shown = { 0 };
	struct json_writer json = json_writer_to(&shown);
	json_open_object(&json, NULL);
	job_payload_show(&json, payload, arena);
	json_close(&json);
	json_t *read = json_read((struct text){ shown.data, shown.size }, NULL, &error);
	INVARIANT(read);
	json_decref(read);
	if (*payload) {
		read = json_read(text_of(payload), NULL, &error);
		INVARIANT(read);
		json_decref(read);
	}
	job_payload_label(payload, TEXT("a"), arena);
	buffer_free(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 }, texts = { 0 };
	struct buffer buffer = { 0 };
	struct roster roster = { 0 };
	struct identity identity = { 0 };
	struct submit_command submit;
	struct error error = { 0 };
	struct secret_keys *keys =
	    secret_keys_read("k:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", &error);
	struct job_reading reading = { .arena = &arena,
		                       .buffer = &buffer,
		                       .roster = &roster,
		                       .identity = &identity,
		                       .secret_keys = keys,
		                       .node_gpus = 8 };
	roster_put(&roster, &(struct tenant_record){ .id = 1, .name = "lab" });
	struct json_scan scan =
	    json_scan_of((struct text){ (const char *)data, size }, &texts, &error);
	bool read = job_json_read(&scan, &reading, &submit, &error);
	INVARIANT(read == (error.code == ERROR_NONE));
	INVARIANT(read || error.text[0]);
	if (read) {
		const struct job_record *job = &submit.job;
		INVARIANT(job->tenant_id == 1 && *job->name);
		INVARIANT(job->gpu_count >= 0 && job->gpu_count <= PARTS_MAX);
		INVARIANT(job->memory_mib >= 0 && job->cpu_milli >= 0 && job->host_bytes >= 0);
		INVARIANT(job->max_runtime_ms >= 0 && job->deadline_ms >= 0);
		check_payload(job->payload, &texts);
	}
	roster_free(&roster);
	secret_keys_free(keys);
	buffer_free(&buffer);
	arena_free(&arena);
	arena_free(&texts);
	return 0;
}
