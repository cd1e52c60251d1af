/* spec.h - what a keeper is told about the work that it keeps */
#ifndef AGENT_KEEPER_SPEC_H
#define AGENT_KEEPER_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/host/cgroup.h"
#include "agent/host/output.h"
#include "base/buffer.h"
#include "base/memory.h"

#define SPEC_GROUPS_MAX 64

/* Texts and lists live as long as what they were read from, or as who filled it says. Lists of
 * texts end with NULL. */
struct spec {
	int64_t reservation_id;
	char **arguments;    /* what is run; none: `failure` says why nothing is */
	char **environment;  /* NAME=value; the task chose some of it */
	const char *script;  /* the file with the task's script, which `arguments` run; NULL: none.
	                        While it is planned: the script itself */
	const char *failure; /* the task's own fault: it ends with 127 and this as its output */
	const char *directory;               /* where it begins; NULL: where it can: */
	const char *submit_directory, *home; /* the first that its user may enter, else /; NULL: no
	                                      */
	int64_t uid, gid;                    /* -1: as the keeper */
	int64_t groups[SPEC_GROUPS_MAX];
	int group_count;
	bool keeps_privileges; /* else it gets no_new_privs and a bounded set of capabilities */
	int64_t grace_ms, runtime_ms; /* runtime_ms 0: for as long as it likes */
	const char *lease_path; /* holds until when it may live; NULL: it does not stop for that */
	int64_t open_files;     /* 0: as the keeper */
	const char *prolog, *epilog; /* programs that are run before and after it; NULL: none */
	char **hook_environment;     /* for those: nothing in it was chosen by the task */
	char **clean_up;             /* run after it, as its user and in its cgroup; may be empty */
	char **clean_up_environment; /* for that: nothing in it was chosen by the task */
	const char *checkpoint_path; /* changes when its work is safe; NULL: none */
	const char *status_path;     /* where the keeper writes down what happened */
	const char *output_directory;
	struct output_limits output;
	bool errors_apart;
	const char *proxy;      /* the program before a model's server; NULL: none */
	int64_t server_port;    /* where the server listens */
	bool any_path;          /* passes all paths, not those of inference alone */
	bool tls_only;          /* requests that come in the clear are refused */
	bool own_network;       /* the server has a network namespace of its own */
	const char *input_path; /* the FIFO of its standard input; NULL: it has none. See input.h */
	const char *session_path; /* the socket for sessions; NULL: it has none. See sessions.h */
	const char *budget_path;  /* the segment of its guard; NULL: it has none */
	bool terminal;            /* its command has one, which is a session */
	struct cgroup group;      /* made already */
};

void spec_encode(struct buffer *buffer, const struct spec *spec);
/* Reads all of the data, into the arena. False where it makes no sense. The texts of `group`
 * are in the arena too. */
bool spec_decode(struct arena *arena, const char *data, size_t size, struct spec *spec);

/* Wipes the environment of the task, which may have secrets in it; the list is empty then. */
void spec_wipe(struct spec *spec);

#endif
