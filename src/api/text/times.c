/* times.c - times and durations in answers */
#include "api/text/times.h"

void json_put_duration(struct json_writer *json, const char *key, int64_t duration_ms)
{
	char text[64];
	struct buffer buffer = { 0 };

	if (duration_ms < 0) {
		json_put_null(json, key);
		return;
	}
	duration_print_hours(&buffer, duration_ms);
	size_t size = buffer.size < sizeof(text) ? buffer.size : sizeof(text);
	memcpy(text, buffer.data, size);
	buffer_free(&buffer);
	json_put_text(json, key, (struct text){ text, size });
}

void json_put_moment(struct json_writer *json, const char *key, int64_t unix_ms)
{
	if (unix_ms <= 0)
		json_put_null(json, key);
	else
		json_put_time(json, key, unix_ms * 1000);
}
