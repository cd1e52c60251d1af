/* log.h - what the program did and met, as lines of JSON on standard error */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* {"time":"2026-01-31T12:00:00.250Z","level":"info","message":"...", and the fields}
 * Each line is one write, from any thread. Whoever logs sees to it that no secret
 * is in it; a field whose name says that it is one (password, secret, token,
 * authorization, key) shows as "hidden" all the same. */

/* A line is written if its level is at most the verbosity: 2 at the start. */
enum log_level {
	LOG_ERROR,   /* 0: something that an operator must see to */
	LOG_WARNING, /* 1: something that may become one */
	LOG_INFO,    /* 2: starts, stops, and what administrators did */
	LOG_DEBUG,   /* 3: each request */
	LOG_STEPS,   /* 4: each step of each decision */
};
#define LOG_VERBOSITY_MAX LOG_STEPS

/* A name, and a text or (where it is NULL) a number. */
struct log_field {
	const char *name, *text;
	int64_t number;
};
#define LOG_TEXT(label, value) ((struct log_field){ .name = (label), .text = (value) })
#define LOG_NUMBER(label, value) ((struct log_field){ .name = (label), .number = (value) })

/* log_at(LOG_INFO, "a node came back", LOG_TEXT("node", name), LOG_NUMBER("gpus", 8)).
 * Nothing is evaluated that is not written. */
#define log_at(level, message, ...)                                                                \
	(log_writes(level)                                                                         \
	     ? log_write((level), (message), (const struct log_field[]){ { 0 }, ##__VA_ARGS__ },   \
	                 sizeof((const struct log_field[]){ { 0 }, ##__VA_ARGS__ }) /              \
	                     sizeof(struct log_field))                                             \
	     : (void)0)

/* How much is written, from now on and for all threads. */
void log_set_verbosity(int verbosity);
int log_verbosity(void);
/* True if a line of this level is written. */
bool log_writes(enum log_level level);

/* One line; fields without a name are passed over. */
void log_write(enum log_level level, const char *message, const struct log_field *fields,
               size_t count);
/* Each line of a text as a message of its own, with the fields. */
void log_write_lines(enum log_level level, const char *lines, const struct log_field *fields,
                     size_t count);

/* Where lines go: standard error, unless a test wants them. */
void log_set_output(int file);

#endif
