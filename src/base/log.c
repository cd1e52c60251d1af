/* log.c - what the program did and met, as lines of JSON on standard error */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/error.h"

/* A text is cut there: a line is for people to read. */
enum { TEXT_BYTES_MAX = 8192 };

static atomic_int verbosity = LOG_INFO;
static atomic_int output = STDERR_FILENO;
/* Keeps a line that takes more than one write together. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

void log_set_verbosity(int wanted)
{
	if (wanted < 0)
		wanted = 0;
	if (wanted > LOG_VERBOSITY_MAX)
		wanted = LOG_VERBOSITY_MAX;
	atomic_store_explicit(&verbosity, wanted, memory_order_relaxed);
}

int log_verbosity(void)
{
	return atomic_load_explicit(&verbosity, memory_order_relaxed);
}

bool log_writes(enum log_level level)
{
	return (int)level <= log_verbosity();
}

void log_set_output(int file)
{
	atomic_store(&output, file);
}

/* How many bytes the UTF-8 character has that begins here; 0: none does. */
static size_t character_bytes(const unsigned char *at, size_t left)
{
	size_t size = at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	if (at[0] < 0xc2 || at[0] > 0xf4 || size > left)
		return 0;
	for (size_t i = 1; i < size; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	bool too_long = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
	bool no_character = (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf4 && at[1] >= 0x90);
	return too_long || no_character ? 0 : size;
}

/* Appends what the bytes from `at` on are in JSON; returns how many it took. */
static size_t put_character(struct buffer *line, const unsigned char *at, size_t left)
{
	if (at[0] >= 0x80) {
		size_t size = character_bytes(at, left);
		if (size > 0)
			buffer_bytes(line, at, size);
		else
			buffer_text(line, "\\ufffd");
		return size > 0 ? size : 1;
	}
	if (at[0] == '"' || at[0] == '\\') {
		const char escaped[2] = { '\\', (char)at[0] };
		buffer_bytes(line, escaped, 2);
	} else if (at[0] == '\n') {
		buffer_bytes(line, "\\n", 2);
	} else if (at[0] < 0x20 || at[0] == 0x7f) {
		buffer_print(line, "\\u%04x", at[0]);
	} else {
		buffer_bytes(line, at, 1);
	}
	return 1;
}

static void log_put_text(struct buffer *line, const char *text, size_t size)
{
	bool cut = size > TEXT_BYTES_MAX;
	if (cut)
		size = TEXT_BYTES_MAX;
	buffer_bytes(line, "\"", 1);
	for (size_t at = 0; at < size;)
		at += put_character(line, (const unsigned char *)text + at, size - at);
	buffer_text(line, cut ? "...\"" : "\"");
}

static void put_time(struct buffer *line)
{
	char text[CALENDAR_TEXT_MAX];

	calendar_write(clock_unix_us(), 3, text);
	buffer_print(line, "{\"time\":\"%s\"", text);
}

static bool is_secret(const char *name)
{
	static const char *const words[] = { "password", "secret", "token", "authorization",
		                             "key" };
	for (; *name; name++)
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strncasecmp(name, words[i], strlen(words[i])) == 0)
				return true;
	return false;
}

static void log_put_field(struct buffer *line, const struct log_field *field)
{
	if (!field->name)
		return;
	buffer_bytes(line, ",", 1);
	log_put_text(line, field->name, strlen(field->name));
	buffer_bytes(line, ":", 1);
	if (!field->text)
		buffer_print(line, "%lld", (long long)field->number);
	else if (is_secret(field->name))
		buffer_text(line, "\"hidden\"");
	else
		log_put_text(line, field->text, strlen(field->text));
}

/* A line that cannot be written is lost: there is nowhere left to report it. */
static void send_line(const struct buffer *line)
{
	size_t sent = 0;
	pthread_mutex_lock(&writing);
	while (sent < line->size) {
		ssize_t count = write(atomic_load(&output), line->data + sent, line->size - sent);
		if (count < 0 && errno != EINTR)
			break;
		sent += count > 0 ? (size_t)count : 0;
	}
	pthread_mutex_unlock(&writing);
}

static void write_line(enum log_level level, const char *message, size_t size,
                       const struct log_field *fields, size_t count)
{
	static const char *const names[] = { "error", "warning", "info", "debug", "steps" };
	struct buffer line = { 0 };
	INVARIANT((int)level >= 0 && level <= LOG_VERBOSITY_MAX);
	put_time(&line);
	buffer_print(&line, ",\"level\":\"%s\",\"message\":", names[level]);
	log_put_text(&line, message, size);
	for (size_t i = 0; i < count; i++)
		log_put_field(&line, &fields[i]);
	buffer_bytes(&line, "}\n", 2);
	send_line(&line);
	buffer_free(&line);
}

void log_write(enum log_level level, const char *message, const struct log_field *fields,
               size_t count)
{
	if (log_writes(level))
		write_line(level, message, strlen(message), fields, count);
}

void log_write_lines(enum log_level level, const char *lines, const struct log_field *fields,
                     size_t count)
{
	if (!log_writes(level))
		return;
	while (*lines) {
		size_t size = strcspn(lines, "\n");
		if (size > 0)
			write_line(level, lines, size, fields, count);
		lines += size;
		lines += *lines == '\n';
	}
}
