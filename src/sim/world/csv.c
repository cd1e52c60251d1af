/* csv.c - tables of comma-separated values, read strictly */
#include "sim/world/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"

#define FILE_MAX ((size_t)1 << 30)

static bool take_names(struct csv *csv, struct error *error)
{
	int found = csv_next(csv, error);
	if (found < 0)
		return false;
	if (found == 0)
		return error_set(error, ERROR_INVALID, "%s: is empty; its first line names columns",
		                 csv->name);
	for (int i = 0; i < csv->columns; i++) {
		csv->names[i] = csv->cells[i];
		if (!*csv->names[i])
			return error_set(error, ERROR_INVALID, "%s:1: column %d has no name",
			                 csv->name, i + 1);
		for (int j = 0; j < i; j++)
			if (strcmp(csv->names[i], csv->names[j]) == 0)
				return error_set(error, ERROR_INVALID,
				                 "%s:1: two columns are named '%s'", csv->name,
				                 csv->names[i]);
	}
	return true;
}

bool csv_begin(struct csv *csv, const char *name, const void *data, size_t size,
               struct error *error)
{
	*csv = (struct csv){ .text = memory_alloc(size + 1), .size = size };
	snprintf(csv->name, sizeof(csv->name), "%s", name);
	if (size > 0)
		memcpy(csv->text, data, size);
	csv->text[size] = '\0';
	return take_names(csv, error);
}

static bool refuse_file(const struct csv *csv, gzFile file, struct error *error)
{
	int code = Z_OK;
	const char *reason = gzerror(file, &code);

	return error_set(error, ERROR_INVALID, "%s: cannot be read: %s", csv->name,
	                 code == Z_ERRNO || !*reason ? strerror(errno) : reason);
}

/* All of the file, into csv->text. zlib reads what is not compressed as it is. */
static bool csv_read_all(struct csv *csv, gzFile file, struct error *error)
{
	size_t capacity = 1 << 16;
	int got;

	csv->text = memory_alloc(capacity);
	while ((got = gzread(file, csv->text + csv->size, (unsigned)(capacity - 1 - csv->size))) >
	       0) {
		csv->size += (size_t)got;
		if (csv->size > FILE_MAX)
			return error_set(error, ERROR_INVALID, "%s: has more than 1 GiB",
			                 csv->name);
		if (csv->size == capacity - 1) {
			capacity *= 2;
			csv->text = memory_resize(csv->text, capacity);
		}
	}
	csv->text[csv->size] = '\0';
	int code = Z_OK;
	gzerror(file, &code);
	return (got == 0 && code == Z_OK) || refuse_file(csv, file, error);
}

bool csv_open(struct csv *csv, const char *path, struct error *error)
{
	*csv = (struct csv){ 0 };
	snprintf(csv->name, sizeof(csv->name), "%s", path);
	gzFile file = gzopen(path, "rb");
	if (!file)
		return error_set(error, ERROR_NOT_FOUND, "%s: cannot be opened: %s", path,
		                 strerror(errno));
	bool fine = csv_read_all(csv, file, error);
	gzclose(file);
	return fine && take_names(csv, error);
}

void csv_free(struct csv *csv)
{
	free(csv->text);
	*csv = (struct csv){ 0 };
}

int csv_column(const struct csv *csv, const char *name)
{
	for (int i = 0; i < csv->columns; i++)
		if (strcmp(csv->names[i], name) == 0)
			return i;
	return -1;
}

bool csv_need(const struct csv *csv, const char *name, int *column, struct error *error)
{
	*column = csv_column(csv, name);
	return *column >= 0 ||
	       error_set(error, ERROR_INVALID, "%s:1: there is no column '%s'", csv->name, name);
}

/* Cuts the line at its commas. How many cells, CSV_COLUMNS_MAX + 1 for more. */
static int csv_cut(struct csv *csv, char *line)
{
	int count = 0;

	for (char *at = line; at;) {
		if (count == CSV_COLUMNS_MAX)
			return CSV_COLUMNS_MAX + 1;
		csv->cells[count++] = at;
		at = strchr(at, ',');
		if (at)
			*at++ = '\0';
	}
	return count;
}

/* True if all that is in the line may be in one. */
static bool check_line(const struct csv *csv, const char *line, size_t length, struct error *error)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)line[i];
		if (byte == '"')
			return error_set(error, ERROR_INVALID,
			                 "%s:%" PRId64 ": has a quote; cells are plain text here",
			                 csv->name, csv->line);
		if (byte < ' ' && byte != '\t')
			return error_set(error, ERROR_INVALID,
			                 "%s:%" PRId64 ": has a byte %d, which is not text",
			                 csv->name, csv->line, byte);
	}
	return length > 0 || error_set(error, ERROR_INVALID, "%s:%" PRId64 ": is an empty line",
	                               csv->name, csv->line);
}

int csv_next(struct csv *csv, struct error *error)
{
	char *line = csv->text + csv->at;
	char *end = memchr(line, '\n', csv->size - csv->at);
	size_t length = end ? (size_t)(end - line) : csv->size - csv->at;

	if (strspn(line, "\r\n") == csv->size - csv->at)
		return 0;
	csv->line++;
	csv->at += length + (end ? 1 : 0);
	if (length > 0 && line[length - 1] == '\r')
		length--;
	line[length] = '\0';
	if (!check_line(csv, line, length, error))
		return -1;
	int count = csv_cut(csv, line);
	if (count > CSV_COLUMNS_MAX) {
		error_set(error, ERROR_INVALID, "%s:%" PRId64 ": has more than %d columns",
		          csv->name, csv->line, CSV_COLUMNS_MAX);
		return -1;
	}
	if (csv->line == 1)
		csv->columns = count;
	if (count != csv->columns) {
		error_set(error, ERROR_INVALID,
		          "%s:%" PRId64 ": has %d cells, the first line names %d columns",
		          csv->name, csv->line, count, csv->columns);
		return -1;
	}
	return 1;
}

bool csv_number(const struct csv *csv, int column, int64_t least, int64_t most, int64_t *number,
                struct error *error)
{
	const char *cell = csv->cells[column];
	bool digits =
	    *cell != '\0' && strlen(cell) <= 18 && strspn(cell, "0123456789") == strlen(cell);
	int64_t value = 0;

	for (const char *at = cell; digits && *at; at++)
		value = value * 10 + (*at - '0');
	if (!digits || value < least || value > most)
		return error_set(error, ERROR_INVALID,
		                 "%s:%" PRId64 ": %s is '%.20s', not a whole number from %" PRId64
		                 " to %" PRId64,
		                 csv->name, csv->line, csv->names[column], cell, least, most);
	*number = value;
	return true;
}

bool csv_text(const struct csv *csv, int column, const char **text, struct error *error)
{
	*text = csv->cells[column];
	return **text != '\0' || error_set(error, ERROR_INVALID, "%s:%" PRId64 ": %s is empty",
	                                   csv->name, csv->line, csv->names[column]);
}
