/* link.c - a connection to PostgreSQL that never waits for longer than it is told */
#include "store/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"

/* The first line of a message, without its end. */
static int first_line(const char *text)
{
	return (int)strcspn(text, "\n");
}

static bool connection_failed(const struct link *link, struct error *error)
{
	const char *text = link->connection ? PQerrorMessage(link->connection) : "";
	return error_set(error, ERROR_UNAVAILABLE, "PostgreSQL: %.*s",
	                 *text ? first_line(text) : 13, *text ? text : "no connection");
}

/* Classes of SQLSTATE after which the same may succeed: connection, transaction
 * rollback, resources, operator intervention, system error, lock not to be had,
 * a session that was idle for too long. */
static bool is_passing(const char *state)
{
	static const char *const classes[] = { "08", "40",    "53",    "57",
		                               "58", "55P03", "25P03", "25006" };
	if (!state)
		return true;
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strncmp(state, classes[i], strlen(classes[i])) == 0)
			return true;
	return false;
}

bool link_refused(const struct link *link, const PGresult *result, struct error *error)
{
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	const char *text = result ? PQresultErrorMessage(result) : "";
	if (!*text)
		return connection_failed(link, error);
	bool passing = is_passing(state) || PQstatus(link->connection) == CONNECTION_BAD;
	return error_set(error, passing ? ERROR_UNAVAILABLE : ERROR_CORRUPT,
	                 "PostgreSQL: %.*s (%s)", first_line(text), text, state ? state : "none");
}

/* Waits until the socket can be read, or written where that is wanted. */
static bool link_wait_for(const struct link *link, short events, int64_t timeout_ms,
                          struct error *error)
{
	struct pollfd socket = { .fd = PQsocket(link->connection), .events = events };
	int64_t until_ms = clock_steady_ms() + timeout_ms;
	for (;;) {
		int64_t left_ms = until_ms - clock_steady_ms();
		int ready = poll(&socket, 1, left_ms > 0 ? (int)left_ms : 0);
		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR)
			return error_set(error, ERROR_UNAVAILABLE, "PostgreSQL: %s",
			                 strerror(errno));
		if (ready == 0 && left_ms <= 0)
			return error_set(error, ERROR_UNAVAILABLE,
			                 "PostgreSQL: no answer for %lld ms",
			                 (long long)timeout_ms);
	}
}

void link_close(struct link *link)
{
	PQfinish(link->connection);
	link->connection = NULL;
}

static bool connect_poll(struct link *link, struct error *error)
{
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;
	while (status != PGRES_POLLING_OK) {
		if (status == PGRES_POLLING_FAILED)
			return connection_failed(link, error);
		short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
		if (!link_wait_for(link, events, link->timeout_ms, error))
			return false;
		status = PQconnectPoll(link->connection);
	}
	return true;
}

static void ignore_notice(void *context, const char *message)
{
	(void)context;
	(void)message;
}

bool link_open(struct link *link, const char *database, const char *application,
               struct error *error)
{
	const char *const names[] = { "dbname", "application_name", "client_encoding", NULL };
	const char *const values[] = { database, application, "UTF8", NULL };
	link->connection = PQconnectStartParams(names, values, 1);
	if (!link->connection || PQstatus(link->connection) == CONNECTION_BAD ||
	    !connect_poll(link, error)) {
		if (!link->connection || PQstatus(link->connection) == CONNECTION_BAD)
			connection_failed(link, error);
		link_close(link);
		return false;
	}
	PQsetnonblocking(link->connection, 1);
	PQsetNoticeProcessor(link->connection, ignore_notice, NULL);
	return true;
}

bool link_push(struct link *link, struct error *error)
{
	return PQflush(link->connection) >= 0 || connection_failed(link, error);
}

/* Sends all that is buffered. The server may have to get rid of answers first. */
static bool send_all(struct link *link, int64_t timeout_ms, struct error *error)
{
	int left;
	while ((left = PQflush(link->connection)) == 1) {
		if (!link_wait_for(link, POLLIN | POLLOUT, timeout_ms, error))
			return false;
		if (!PQconsumeInput(link->connection))
			return connection_failed(link, error);
	}
	return left == 0 || connection_failed(link, error);
}

/* Waits for the next result, which may be none: then `*result` is NULL. */
static bool next_result(struct link *link, int64_t timeout_ms, PGresult **result,
                        struct error *error)
{
	while (PQisBusy(link->connection)) {
		if (!link_wait_for(link, POLLIN, timeout_ms, error))
			return false;
		if (!PQconsumeInput(link->connection))
			return connection_failed(link, error);
	}
	*result = PQgetResult(link->connection);
	return true;
}

static bool is_fine(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
	       status == PGRES_EMPTY_QUERY;
}

PGresult *link_query(struct link *link, const char *sql, int64_t timeout_ms, struct error *error)
{
	PGresult *last = NULL, *result = NULL;
	if (!PQsendQuery(link->connection, sql)) {
		connection_failed(link, error);
		return NULL;
	}
	bool done = send_all(link, timeout_ms, error);
	while (done && (done = next_result(link, timeout_ms, &result, error)) && result) {
		PQclear(last);
		last = result;
		done = is_fine(result) || link_refused(link, result, error);
	}
	if (done && last)
		return last;
	if (done)
		connection_failed(link, error);
	PQclear(last);
	return NULL;
}

bool link_execute(struct link *link, const char *sql, int64_t timeout_ms, struct error *error)
{
	PGresult *result = link_query(link, sql, timeout_ms, error);
	PQclear(result);
	return result != NULL;
}

/* Sends the statement and waits until the server is ready to copy. */
static bool begin_copy(struct link *link, const char *sql, ExecStatusType wanted,
                       struct error *error)
{
	PGresult *result = NULL;
	if (!PQsendQuery(link->connection, sql))
		return connection_failed(link, error);
	if (!send_all(link, link->timeout_ms, error) ||
	    !next_result(link, link->timeout_ms, &result, error))
		return false;
	bool ready = PQresultStatus(result) == wanted || link_refused(link, result, error);
	PQclear(result);
	return ready;
}

/* Reads the results of what was sent until there are none. */
static bool end_results(struct link *link, struct error *error)
{
	PGresult *result = NULL;
	bool fine = true;
	while (next_result(link, link->timeout_ms, &result, error)) {
		if (!result)
			return fine;
		if (fine)
			fine = is_fine(result) || link_refused(link, result, error);
		PQclear(result);
	}
	return false;
}

bool link_copy_begin(struct link *link, const char *sql, struct error *error)
{
	return begin_copy(link, sql, PGRES_COPY_IN, error);
}

bool link_copy_put(struct link *link, const char *data, size_t size, struct error *error)
{
	enum { PIECE = 65536 };
	while (size > 0) {
		int piece = size < PIECE ? (int)size : PIECE;
		int sent = PQputCopyData(link->connection, data, piece);
		if (sent < 0)
			return connection_failed(link, error);
		if (sent == 0) {
			if (!send_all(link, link->timeout_ms, error))
				return false;
			continue;
		}
		data += piece;
		size -= (size_t)piece;
	}
	return link_push(link, error);
}

bool link_copy_end(struct link *link, struct error *error)
{
	int ended;
	while ((ended = PQputCopyEnd(link->connection, NULL)) == 0)
		if (!send_all(link, link->timeout_ms, error))
			return false;
	return (ended > 0 || connection_failed(link, error)) &&
	       send_all(link, link->timeout_ms, error) && end_results(link, error);
}

bool link_copy_out(struct link *link, const char *sql, copy_row each, void *context,
                   struct error *error)
{
	if (!begin_copy(link, sql, PGRES_COPY_OUT, error))
		return false;
	for (;;) {
		char *row = NULL;
		int size = PQgetCopyData(link->connection, &row, 1);
		if (size == -1)
			return end_results(link, error);
		if (size == -2)
			return connection_failed(link, error);
		if (size == 0) {
			if (!link_wait_for(link, POLLIN, link->timeout_ms, error))
				return false;
			if (!PQconsumeInput(link->connection))
				return connection_failed(link, error);
			continue;
		}
		bool done = each(context, row, (size_t)size, error);
		PQfreemem(row);
		if (!done)
			return false;
	}
}

bool link_pipeline_begin(struct link *link, struct error *error)
{
	return PQenterPipelineMode(link->connection) == 1 || connection_failed(link, error);
}

bool link_pipeline_end(struct link *link, pipeline_result each, void *context, struct error *error)
{
	PGresult *result = NULL;
	bool synced = false, fine = true;
	int number = 0;

	if (!PQpipelineSync(link->connection))
		return connection_failed(link, error);
	if (!send_all(link, link->timeout_ms, error))
		return false;
	while (!synced) {
		if (!next_result(link, link->timeout_ms, &result, error))
			return false;
		if (!result) { /* between two statements, or the connection is gone */
			if (PQstatus(link->connection) == CONNECTION_BAD)
				return connection_failed(link, error);
			continue;
		}
		synced = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
		if (!synced && fine)
			fine = each(context, number++, result, error);
		PQclear(result);
	}
	return fine &&
	       (PQexitPipelineMode(link->connection) == 1 || connection_failed(link, error));
}
