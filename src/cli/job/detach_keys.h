/* detach_keys.h - the keys by which somebody leaves a session that continues */
#ifndef CLI_JOB_DETACH_KEYS_H
#define CLI_JOB_DETACH_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Ctrl-P Ctrl-Q, or ~. at the beginning of a line, where ~~ is one ~. Zero-initialized is the
 * beginning of a line. */
struct detach_keys {
	bool inside_line, has_tilde, has_control_p;
};

/* Appends what is typed for the session. True: the keys were pressed; what follows them is left
 * out. At most one byte is held back: a ~ that begins a line, or a Ctrl-P. */
bool detach_keys_filter(struct detach_keys *keys, const char *data, size_t size,
                        struct buffer *out);

/* True while a Ctrl-P is held back, for which somebody may wait. */
bool detach_keys_are_waiting(const struct detach_keys *keys);
/* No other key has followed: it is passed on. */
void detach_keys_flush(struct detach_keys *keys, struct buffer *out);

#endif
