/* detach_keys.c - the keys by which somebody leaves a session that continues */
#include "cli/job/detach_keys.h"

enum { CONTROL_P = 'P' & 0x1f, CONTROL_Q = 'Q' & 0x1f };

/* A ~ was held back. True: it is left out, or the session is left. */
static bool after_tilde(struct detach_keys *keys, char key, struct buffer *out, bool *leaves)
{
	keys->has_tilde = false;
	keys->inside_line = true;
	*leaves = key == '.';
	if (*leaves)
		return true;
	buffer_bytes(out, "~", 1);
	return key == '~';
}

bool detach_keys_are_waiting(const struct detach_keys *keys)
{
	return keys->has_control_p;
}

void detach_keys_flush(struct detach_keys *keys, struct buffer *out)
{
	const char key = CONTROL_P;

	if (!keys->has_control_p)
		return;
	keys->has_control_p = false;
	keys->inside_line = true;
	buffer_bytes(out, &key, 1);
}

bool detach_keys_filter(struct detach_keys *keys, const char *data, size_t size, struct buffer *out)
{
	bool leaves = false;

	for (size_t i = 0; i < size && !leaves; i++) {
		char key = data[i];
		leaves = keys->has_control_p && key == CONTROL_Q;
		if (leaves)
			break;
		detach_keys_flush(keys, out);
		if (keys->has_tilde && after_tilde(keys, key, out, &leaves))
			continue;
		keys->has_control_p = key == CONTROL_P;
		keys->has_tilde = key == '~' && !keys->inside_line;
		if (keys->has_control_p || keys->has_tilde)
			continue;
		keys->inside_line = key != '\r' && key != '\n';
		buffer_bytes(out, &key, 1);
	}
	return leaves;
}
