/* protobuf_fuzz.c - any bytes as each message that is read from strangers */
#include "agent.pb-c.h"
#include "api/text/protobuf.h"
#include "base/error.h"
#include "health.pb-c.h"
#include "reflection_v1.pb-c.h"
#include "scheduler.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const ProtobufCMessageDescriptor *const types[] = {
		&scheduler__submit_job_request__descriptor,
		&scheduler__list_jobs_request__descriptor,
		&agent__envelope__descriptor,
		&agent__register_agent_request__descriptor,
		&agent__heartbeat_request__descriptor,
		&agent__report_metrics_request__descriptor,
		&agent__job_assignment_request__descriptor,
		&grpc__health__v1__health_check_request__descriptor,
		&grpc__reflection__v1__server_reflection_request__descriptor,
	};
	struct arena arena = { 0 };

	if (size == 0)
		return 0;
	const ProtobufCMessageDescriptor *type = types[data[0] % (sizeof(types) / sizeof(*types))];
	struct text bytes = { (const char *)data + 1, size - 1 };
	void *message = protobuf_read(type, bytes, &arena);
	if (message) {
		struct text written = protobuf_write(message, &arena);
		INVARIANT(protobuf_read(type, written, &arena));
	}
	arena_free(&arena);
	return 0;
}
