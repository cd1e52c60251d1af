/* agents_local.h - what the files of agents share */
#ifndef API_SESSION_AGENTS_LOCAL_H
#define API_SESSION_AGENTS_LOCAL_H

#include "agent.pb-c.h"
#include "api/engine/engine_pool.h"
#include "api/session/agents.h"
#include "base/map.h"

struct legacy;

/* A call of Connect. `node` is NULL until it said hello; then it is the node's `stream`. */
struct agents_stream {
	struct stream stream;
	struct agents *agents;
	struct request *request;
	struct agents_node *node;
	struct buffer waiting; /* messages that were not taken yet: a size and the bytes of each */
};

/* A node that is known, or has said hello. `session` outlives connections; at most one
 * stream is the node's. `legacy` speaks for a node that has no agent of ours. */
/* What a work uses of a GPU. */
struct part_use {
	int64_t reservation_id, memory_mib;
	uint64_t uuid; /* its hash */
};

struct agents_node {
	struct agents *agents;
	char *name;
	struct session *session;
	struct timer timer;
	struct agents_stream *stream;
	struct legacy *legacy;
	struct agents_output *outputs;
	int output_count;
	struct agents_input *inputs;
	int input_count;
	struct agents_channel *channels;
	int channel_count;
	struct work_sample *works; /* what they used, by reservation: as the last beat said */
	size_t work_count, work_capacity;
	struct part_use *uses; /* as the last beat that measured said */
	size_t use_count, use_capacity;
	struct slot_sample *slots; /* as the last beat said */
	size_t slot_count, slot_capacity;
	struct slot_key *keys;
	size_t key_count, key_capacity;
	struct agents_lease *leases; /* in no order */
	size_t lease_count, lease_capacity;
};

/* A command that came of what a node said. Nobody is answered over an exchange: it carries its
 * place in the node's stream, and outlives the connection that it came by. */
struct agents_request {
	struct engine_request engine; /* first: one pointer is the other */
	struct agents *agents;
	struct agents_node *node;
	int64_t connection, change;
};

struct agents {
	struct engine_port *port; /* gone before this is freed */
	struct loop *loop;
	struct agents_settings settings;
	struct address_rules addresses;
	char host_name[256]; /* of this machine */
	bool begun;
	int64_t term;
	struct text_map nodes; /* by name */
	struct agents_node **list;
	size_t count, capacity;
	struct text_map samples;     /* of struct agents_sample, by UUID */
	struct engine_pool requests; /* of struct agents_request */
	struct buffer scratch;
	struct arena arena;   /* of one order */
	struct arena packing; /* of one envelope */
	int64_t last_output_id;
	struct agents_output *doomed; /* that end when the loop comes to it */
	int64_t last_input_id;
	struct agents_input *doomed_inputs;
	int64_t last_channel_id;
	int64_t first_lease_id; /* of this start */
	struct agents_channel *doomed_channels;
};

/* The node, made where there is none yet. */
struct agents_node *agents_node(struct agents *agents, const char *name);
struct agents_node *agents_find(const struct agents *agents, const char *name);

/* Hands a message of the node to its session, and does what follows. Answers go to the
 * stream that it came `from`, or where that is NULL to what speaks for the node. */
void agents_message(struct agents_node *node, const struct message *message,
                    struct agents_stream *from);
/* Does what a session put out; frees the outputs. */
void agents_do(struct agents_node *node, struct agents_stream *from,
               struct session_outputs *outputs);
/* Tells people that the node claimed something that is not its own. */
void agents_misreport(const struct agents_node *node, const char *sentence);
/* The connection of the node broke. */
void agents_disconnected(struct agents_node *node);

/* Whether it can be a node's name, and who calls may speak for that node: ERROR_INVALID,
 * ERROR_FORBIDDEN. */
bool agents_may_speak(const struct identity *identity, const char *name, struct error *error);

/* The connection of the node is gone: nothing is read from it or written to it any more. */
void agents_end_all(struct agents_node *node, const char *reason);

/* agents_stream.c */
/* Sends an envelope; ends the stream if the node does not read. */
void agents_stream_send(struct agents_stream *stream, const Agent__Envelope *envelope);
/* Like agents_stream_send(), but leaves it, and returns false, where much is waiting already. */
bool agents_stream_try(struct agents_stream *stream, const Agent__Envelope *envelope);
void agents_stream_end(struct agents_stream *stream, enum grpc_status status, const char *text);

/* agents_output.c */
void agents_output_chunk(struct agents_node *node, const Agent__OutputChunk *chunk);
/* The node is away: all that is read from it ends soon. */
void agents_output_end_all(struct agents_node *node, const char *reason);
/* Ends those that were to end soon. */
void agents_output_free(struct agents *agents);

/* agents_input.c: as for outputs */
void agents_input_taken(struct agents_node *node, const Agent__InputTaken *taken);
void agents_input_end_all(struct agents_node *node, const char *reason);
void agents_input_free(struct agents *agents);

/* agents_channel.c: as for outputs */
void agents_channel_data(struct agents_node *node, const Agent__SessionData *data);
void agents_channel_closed(struct agents_node *node, const Agent__SessionClose *close);
void agents_channel_end_all(struct agents_node *node, const char *reason);
void agents_channel_free(struct agents *agents);

/* agents_samples.c */
void agents_take_beat(struct agents_node *node, const struct beat *beat);
void agents_samples_free(struct agents *agents);

/* agents_keys.c */
void agents_take_key(struct agents_node *node, const Agent__SlotKey *told);
/* What is between the scheduler and a node that connects: all leases on its slots. */
void agents_tell_leases(struct agents_node *node);
void agents_lease_taken(struct agents_node *node, const Agent__LeaseKeyTaken *taken);
void agents_keys_free(struct agents_node *node);

/* legacy.c: for agents that are not ours. */
/* A message to the node that `legacy` speaks for. */
void legacy_take(struct agents_node *node, const void *data, size_t size);
void legacy_free(struct legacy *legacy);

#endif
