/* ids.c - "job-12" and back */
#include "api/text/ids.h"

bool id_read(struct text text, const char *prefix, int64_t *id)
{
	int64_t number = 0;

	if (text_starts(text, prefix))
		text = text_from(text, strlen(prefix));
	if (text.size == 0 || text.data[0] == '0')
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, text.data[i] - '0', &number))
			return false;
	}
	*id = number;
	return true;
}

size_t id_write(char out[ID_TEXT_MAX], const char *prefix, int64_t id)
{
	char digits[20];
	size_t count = 0, size = strlen(prefix);

	do {
		digits[count++] = (char)('0' + id % 10);
		id /= 10;
	} while (id > 0 && count < sizeof(digits));
	memcpy(out, prefix, size);
	while (count > 0)
		out[size++] = digits[--count];
	out[size] = '\0';
	return size;
}

void json_put_id(struct json_writer *json, const char *key, const char *prefix, int64_t id)
{
	char text[ID_TEXT_MAX];

	if (id <= 0) {
		json_put_null(json, key);
		return;
	}
	size_t size = id_write(text, prefix, id);
	json_put_text(json, key, (struct text){ text, size });
}
