/* limits.c - what a client may ask of the service before it is told no */
#include "wire/net/limits.h"

struct limits limits_default(void)
{
	return (struct limits){
		.head_bytes = 16 << 10,
		.headers = 100,
		.target_bytes = 8 << 10,
		.body_bytes = 8 << 20,
		.message_bytes = 4 << 20,
		.pipeline = 256,
		.streams = 512,
		.output_bytes = 1 << 20,
		.control_frames_per_second = 1000,
		.resets_per_second = 200,
		.connections = 16384,
		.connections_per_address = 4096,
		.connections_reserved = 1024,
		.exchanges = 65536,
		.buffered_bytes = (size_t)256 << 20,
		.held_bytes_per_connection = 16 << 20,
		.held_bytes = (size_t)256 << 20,
		.handshake_ms = 10000,
		.head_ms = 10000,
		.body_ms = 300000,
		.stall_ms = 20000,
		.idle_ms = 75000,
		.stranger_ms = 2000,
		.write_ms = 30000,
		.ping_ms = 30000,
		.linger_ms = 2000,
		.compress_bytes = 1400,
		.gather_ms = 40,
	};
}

bool limits_check(const struct limits *limits, struct error *error)
{
	const struct {
		const char *name;
		uint64_t value, least;
	} rules[] = {
		{ "head_bytes", limits->head_bytes, 1024 },
		{ "headers", limits->headers, 8 },
		{ "target_bytes", limits->target_bytes, 256 },
		{ "body_bytes", limits->body_bytes, 1 },
		{ "message_bytes", limits->message_bytes, 1 },
		{ "pipeline", limits->pipeline, 1 },
		{ "streams", limits->streams, 1 },
		{ "output_bytes", limits->output_bytes, 4096 },
		{ "control_frames_per_second", limits->control_frames_per_second, 10 },
		{ "resets_per_second", limits->resets_per_second, 1 },
		{ "connections", limits->connections, 1 },
		{ "connections_per_address", limits->connections_per_address, 1 },
		{ "exchanges", limits->exchanges, 1 },
		{ "buffered_bytes", limits->buffered_bytes, limits->body_bytes },
		{ "held_bytes_per_connection", limits->held_bytes_per_connection, 64 << 10 },
		{ "held_bytes", limits->held_bytes, limits->held_bytes_per_connection },
		{ "handshake_ms", (uint64_t)limits->handshake_ms, 1 },
		{ "head_ms", (uint64_t)limits->head_ms, 1 },
		{ "body_ms", (uint64_t)limits->body_ms, 1 },
		{ "stall_ms", (uint64_t)limits->stall_ms, 1 },
		{ "idle_ms", (uint64_t)limits->idle_ms, 1 },
		{ "stranger_ms", (uint64_t)limits->stranger_ms, 1 },
		{ "write_ms", (uint64_t)limits->write_ms, 1 },
		{ "ping_ms", (uint64_t)limits->ping_ms, 1 },
		{ "linger_ms", (uint64_t)limits->linger_ms, 1 },
		{ "compress_bytes", limits->compress_bytes, 1 },
	};
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].value < rules[i].least || rules[i].value > INT64_MAX)
			return error_set(error, ERROR_INVALID,
			                 "the limit %s must be at least %llu and less than 2^63",
			                 rules[i].name, (unsigned long long)rules[i].least);
	if (limits->gather_ms < 0)
		return error_set(error, ERROR_INVALID, "the limit gather_ms is negative");
	if (limits->target_bytes > limits->head_bytes)
		return error_set(error, ERROR_INVALID,
		                 "the limit target_bytes is larger than head_bytes");
	return true;
}
