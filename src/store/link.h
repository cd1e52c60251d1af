/* link.h - a connection to PostgreSQL that never waits for longer than it is told */
#ifndef STORE_LINK_H
#define STORE_LINK_H

#include <libpq-fe.h>

#include "base/buffer.h"
#include "base/error.h"

/* `connection` is NULL or a connection in non-blocking mode. Every wait ends
 * after `timeout_ms` without a byte in either direction. Errors have code
 * ERROR_UNAVAILABLE where the same may succeed later: no connection, no answer,
 * no disk or memory there, a lock, a server that shuts down; and ERROR_CORRUPT
 * where the server refused for good. After an error the link is to be closed. */
struct link {
	PGconn *connection;
	int64_t timeout_ms;
};

bool link_open(struct link *link, const char *database, const char *application,
               struct error *error);
void link_close(struct link *link);

/* Runs statements, separated by semicolons; the last result, which the caller
 * clears with PQclear, or NULL with a reason. */
PGresult *link_query(struct link *link, const char *sql, int64_t timeout_ms, struct error *error);
bool link_execute(struct link *link, const char *sql, int64_t timeout_ms, struct error *error);

/* COPY ... FROM STDIN: the statement, then rows in text form in any pieces. */
bool link_copy_begin(struct link *link, const char *sql, struct error *error);
bool link_copy_put(struct link *link, const char *data, size_t size, struct error *error);
bool link_copy_end(struct link *link, struct error *error);
/* COPY ... TO STDOUT: each row in text form, with its newline. */
typedef bool (*copy_row)(void *context, char *row, size_t size, struct error *error);
bool link_copy_out(struct link *link, const char *sql, copy_row each, void *context,
                   struct error *error);

/* A pipeline: begin, any number of PQsendQuery..., then link_pipeline_end reads
 * the result of each, in order, and ends the pipeline. */
bool link_pipeline_begin(struct link *link, struct error *error);
/* Sends what is buffered, as far as that goes without waiting. */
bool link_push(struct link *link, struct error *error);
/* False from `each` ends with the error that it has set. */
typedef bool (*pipeline_result)(void *context, int number, const PGresult *result,
                                struct error *error);
bool link_pipeline_end(struct link *link, pipeline_result each, void *context, struct error *error);

/* Fills the error with the server's reason; returns false. */
bool link_refused(const struct link *link, const PGresult *result, struct error *error);

#endif
