/* agents.h - the nodes' agents: their sessions, what they measure, and what they are told */
#ifndef API_SESSION_AGENTS_H
#define API_SESSION_AGENTS_H

#include "api/auth/streams.h"
#include "api/request/request.h"
#include "node/session.h"

/* In the loop's thread alone. A session for each node that is known; what nodes say becomes
 * asks, what the core orders becomes messages. */
struct agents;

/* What agents are told that were not told otherwise where they run; 0 or NULL: nothing. */
struct agents_advice {
	int64_t heartbeat_ms, metrics_ms;
	const char *container_runtime; /* lives for ever */
	bool sign_in; /* everyone has to sign in, so that tenants are who they say */
};

struct agents_settings {
	struct streams *streams; /* NULL: connections are not watched */
	struct session_policy policy;
	struct agents_advice advice;
	/* What the node is given to run a task with: the payload of the job with its secrets
	 * opened. Appends; false with a reason. */
	bool (*task_payload)(void *context, int64_t job_id, int64_t task, struct buffer *payload,
	                     struct error *error);
	bool (*model_payload)(void *context, int64_t model_id, struct buffer *payload,
	                      struct error *error);
	/* Hosts that nodes may announce for slots beside their own: see node/address.h. NULL, or
	 * ends with NULL; copied. */
	const char *const *slot_addresses;
	/* A node claimed something that is not its own; `sentence` says what. May be NULL. */
	void (*misreport)(void *context, const char *node, const char *sentence);
	/* What a node said that people want to see: late, over, idle, refused. May be NULL. */
	void (*note)(void *context, const char *node, const struct message *message);
	/* The node holds the key of a lease (agents_tell_lease()), or `reason` says why not. May
	 * be NULL. */
	void (*lease_taken)(void *context, int64_t lease_id, const char *reason);
	/* How slots are reached is known, or is another way. May be NULL. */
	void (*slots_changed)(void *context);
	void *context;
};

struct agents *agents_new(struct engine_port *port, const struct agents_settings *settings);
/* Ends the streams of all nodes, which connect again later. */
void agents_stop(struct agents *agents);
void agents_free(struct agents *agents);
/* Opens a session for each node in the catalogue: at the start, when leading. */
void agents_begin(struct agents *agents);

/* Tells all that are connected, and those that connect from now on. */
void agents_advise(struct agents *agents, const struct agents_advice *advice);

/* From the engine's listener. */
void agents_order(struct agents *agents, const struct effect *effect);
/* The core found that the node reported on another's reservation. */
void agents_misreported(struct agents *agents, const struct event *event);
/* An administrator declared the node dead, or removed it; after that is durable. */
void agents_given_up(struct agents *agents, const char *node, const char *reason);

/* The calls of agent.AgentService, from those who may speak for a node. The first two have their
 * message; the others are streams. */
void agents_register(struct agents *agents, struct request *request);
void agents_report(struct agents *agents, struct request *request);
void agents_connect(struct agents *agents, struct request *request);
void agents_heartbeat(struct agents *agents, struct request *request);
void agents_assignments(struct agents *agents, struct request *request);

#define AGENTS_REASON_MAX 160
/* The last that was measured: volatile. False if nothing was. */
struct agents_sample {
	int64_t used_mib, temperature_c, power_mw, utilisation; /* thousandths */
	int64_t sampled_ms;
	int64_t sm_active, dram_active; /* thousandths; negative: not known */
	char reason[AGENTS_REASON_MAX]; /* why it is not healthy, where the node says */
};
bool agents_sample(const struct agents *agents, const char *uuid, struct agents_sample *sample);
/* Requests in flight that the runtime of a slot on the node tells; -1: it does not. */
int64_t agents_slot_active(const struct agents *agents, const char *node, int64_t slot_id);
/* The key that requests to a slot on the node carry; NULL: none, or (`*follows`) the node has not
 * told it to this scheduler yet. Valid until the node's next message. */
enum { SLOT_KEY_BYTES_MAX = 127 };
const char *agents_slot_key(const struct agents *agents, const char *node, int64_t slot_id,
                            bool *follows);
/* SHA-256 of the certificate that the slot shows, hexadecimal; NULL: it speaks no TLS. `*tls_only`:
 * it speaks nothing else. Valid until the node's next message. */
const char *agents_slot_certificate(const struct agents *agents, const char *node, int64_t slot_id,
                                    bool *tls_only);

/* The key of a lease on a slot, which the node is told now and whenever it connects again. */
struct agents_lease {
	int64_t lease_id, slot_id, until_ms; /* until_ms: since 1970 */
	char key[SLOT_KEY_BYTES_MAX + 1];
};
/* True if leases on the slot have keys of their own; else they have that of the slot. */
bool agents_slot_has_lease_keys(const struct agents *agents, const char *node, int64_t slot_id);
void agents_tell_lease(struct agents *agents, const char *node, const struct agents_lease *lease);
void agents_end_lease(struct agents *agents, const char *node, int64_t slot_id, int64_t lease_id);
/* Leases that nodes know of, and that are numbered less, are of an earlier start. */
void agents_begin_leases(struct agents *agents, int64_t first_id);

/* What a work of the node has used so far, as last measured; false: nothing is known. */
bool agents_use(const struct agents *agents, const char *node, int64_t reservation_id,
                struct task_use *use);
/* MiB that the work uses of one GPU, as last measured; -1: nothing is known. */
int64_t agents_part_use(const struct agents *agents, const char *node, int64_t reservation_id,
                        const char *uuid);
bool agents_is_connected(const struct agents *agents, const char *node);

/* The output of a task. `part` gets it piece by piece, `end` is called once: with NULL, or
 * with why not (the node is away, the output is gone). agents_stop_output may come before. */
struct agents_output;
struct agents_output_options {
	const char *node;
	int64_t reservation_id, job_id, task;
	bool follow;
	int64_t offset; /* negative: bytes before the end */
	bool errors;    /* standard error instead, where it is apart */
	void (*part)(void *context, int64_t offset, const void *data, size_t size);
	void (*end)(void *context, const struct error *error);
	void *context;
};
struct agents_output *agents_read_output(struct agents *agents,
                                         const struct agents_output_options *options);
void agents_stop_output(struct agents_output *output);
/* While it is paused no more comes than is on its way: some hundred KiB. */
void agents_pause_output(struct agents_output *output, bool paused);

/* A part of the standard input of a task. `done` is called once, never from within the call: with
 * the answer when the node has taken all of the part, when the task reads no more, or after a while
 * with what was taken; or with why not. `data` is read during the call alone. */
struct agents_input;
struct agents_input_answer {
	int64_t offset; /* everything before it was taken, by this run */
	bool closed;    /* the task reads no more */
};
struct agents_input_options {
	const char *node;
	int64_t reservation_id, offset;
	struct text data;
	bool end; /* nothing follows */
	void (*done)(void *context, const struct agents_input_answer *answer,
	             const struct error *error);
	void *context;
};
struct agents_input *agents_write_input(struct agents *agents,
                                        const struct agents_input_options *options);
/* Before `done`, which is not called then. */
void agents_stop_input(struct agents_input *input);

/* A channel to an interactive session of a task: frames both ways, as channel/frame.h has them.
 * `frame` gets each that comes. `closed` is called once, never from within a call, unless the
 * channel is closed before; with an error where the session could not be reached or the node is
 * away. */
struct agents_channel;
enum agents_channel_kind { CHANNEL_COMMAND = 1, CHANNEL_ATTACH, CHANNEL_FORWARD };
struct agents_channel_options {
	const char *node;
	int64_t reservation_id;
	const char *session_id;
	enum agents_channel_kind kind;
	char **command, **environment;
	size_t command_count, environment_count;
	bool terminal;
	int64_t columns, rows, port;
	int64_t offset; /* of output that the client has; negative: none */
	int64_t idle_ms;
	void (*frame)(void *context, struct text frame);
	void (*closed)(void *context, const struct error *error);
	void *context;
};
struct agents_channel *agents_open_channel(struct agents *agents,
                                           const struct agents_channel_options *options);
void agents_channel_send(struct agents_channel *channel, struct text frame);
void agents_close_channel(struct agents_channel *channel);

#endif
