/* uuid.c - UUIDs of GPUs as text */
#include "guard/budget/uuid.h"

#include <string.h>

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

static bool dash_before(int byte)
{
	return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

bool uuid_parse(const char *text, uint8_t uuid[16])
{
	if (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0)
		text += 4;
	for (int byte = 0; byte < 16; byte++) {
		if (dash_before(byte) && *text++ != '-')
			return false;
		int high = digit_value(text[0]);
		int low = high >= 0 ? digit_value(text[1]) : -1;
		if (low < 0)
			return false;
		uuid[byte] = (uint8_t)(high * 16 + low);
		text += 2;
	}
	return *text == '\0';
}

void uuid_format(const uint8_t uuid[16], const char *prefix, char text[UUID_TEXT_MAX])
{
	memcpy(text, prefix, 4);
	text += 4;
	for (int byte = 0; byte < 16; byte++) {
		if (dash_before(byte))
			*text++ = '-';
		*text++ = "0123456789abcdef"[uuid[byte] >> 4];
		*text++ = "0123456789abcdef"[uuid[byte] & 15];
	}
	*text = '\0';
}
