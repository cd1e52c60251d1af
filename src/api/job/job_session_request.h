/* job_session_request.h - what is asked for in a request about interactive sessions, and whether
 * who asks may have it */
#ifndef API_JOB_JOB_SESSION_REQUEST_H
#define API_JOB_JOB_SESSION_REQUEST_H

#include "api/job/job_place.h"
#include "api/request/request.h"
#include "api/session/agents.h"

enum { SESSION_ID_BYTES = 24 };

/* In the arena of its request, as is all that `options` points to. */
struct session_request {
	int64_t job_id, task;
	char id[SESSION_ID_BYTES + 1];
	char node[NODE_NAME_MAX];
	const char *object, *detail; /* for the audit log */
	struct agents_channel_options options;
};

struct session_request *session_request_new(struct request *request);
/* Each of these answers the request where it returns false. */
/* Reads the body of a request for a new session. */
bool session_request_body(struct request *request, struct session_request *wanted);
/* Reads path and query of one that becomes a WebSocket. */
bool session_request_query(struct request *request, struct session_request *wanted);
/* Finds the task. The job's own user, and administrators, may enter it. */
bool session_request_place(struct request *request, struct session_request *wanted);

/* The subprotocol to answer with, or NULL: none with a token, if there is another. */
const char *session_request_protocol(struct request *request);
/* Of a refusal as its node told it. */
enum error_code session_refusal_code(int code);

#endif
