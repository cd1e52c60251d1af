/* run.h - from an order to what a keeper is told: command, environment, user, limits */
#ifndef AGENT_WORKLOAD_RUN_H
#define AGENT_WORKLOAD_RUN_H

#include "agent/host/slot_keys.h"
#include "agent/keeper/spec.h"
#include "agent/uplink/envelope.h"
#include "agent/workload/mps.h"
#include "agent/workload/tenant_users.h"
#include "node/message.h"
#include "seal/secret.h"

/* Which works with GPUs are put under the guard. */
enum guarding {
	GUARDING_SHARED, /* those that share a GPU, and those that ask for it */
	GUARDING_ALWAYS,
	GUARDING_NEVER,
};

/* How this node runs things; set by its administrator. Texts may be NULL. */
struct run_settings {
	const char *node;    /* its name */
	const char *label;   /* its name among all agents of the machine, for cgroups and such */
	const char *address; /* that others reach it by */
	/* As whom tasks run that name no user, where the agent is root: as the user of their
	 * tenant in `tenant_users`, as `default_user`, or as their tenant's id of `uids`. */
	const char *tenant_users; /* TENANT=NAME,... */
	const char *default_user;
	struct uid_range uids;
	const char *homes;    /* of the tenants with an id of the range, as in tenant_users.h */
	const char *folders;  /* where each task has a folder, as in folder.h */
	bool allow_root;      /* tasks may run as root */
	bool trusts_users;    /* tasks may name their user, where the agent is root */
	bool keep_privileges; /* of tasks without an image: see spec.h */
	const struct secret_keys *keys; /* that secrets of tasks are sealed with here */
	const char *prolog, *epilog;
	const char *guard; /* libgpuguard.so; NULL: there is none */
	enum guarding guarding;
	const char *cgroup_base; /* where the groups of works are; NULL: nowhere in particular */
	const char *container_runtime; /* podman, docker, none; NULL, auto: whichever is there */
	int64_t pids, open_files;
	int64_t port_first, port_last; /* that models are reached at */
	const char *slot_proxy;        /* the program before servers of models */
	bool slot_networks;            /* those have network namespaces of their own */
	enum slot_tls_mode {
		SLOT_TLS_OFFER, /* who asks a model may speak TLS; gateways do */
		SLOT_TLS_REQUIRE,
		SLOT_TLS_OFF,
	} slot_tls;
	const char *slot_cert_file, *slot_key_file; /* NULL: one that the agent makes */
	struct output_limits output;
	bool errors_apart;
	const char *pod_cgroups; /* where the cgroups of pods are mounted */
	bool simulated;          /* the GPUs are: nothing is there to give to containers */
	struct mps *mps;         /* gives shares of compute; NULL: this node gives none */
};

/* What the payload of a task says, as far as this node reads it. */
struct run_plan {
	struct spec spec;
	int64_t fake_memory_mib;  /* of each GPU; -1: does not say */
	int64_t fake_utilisation; /* thousandths; -1: does not say */
	const char *fake_suspend; /* "refuse", "lose"; NULL: it is suspended and resumed */
	int64_t notice_signal;    /* beside SIGTERM; 0: none */
	const char *health_path;  /* slots: where it answers when it is ready */
	int64_t port;             /* slots: that the server listens on, on loopback */
	struct slot_door door;    /* slots: where others reach it; port 0: at the server's */
	bool container;           /* tasks: runs in one */
	bool reads_input;         /* tasks: has a standard input */
	bool guarded;             /* is to be under the guard */
	int64_t gpu_processes;    /* that divide its share of compute; 0: it has none */
};

/* Fills the plan, but for what depends on the state directory and the cgroup; texts are in the
 * arena. What is the task's own fault becomes spec.failure. False with a reason where this
 * node cannot do it, and another may. */
bool run_plan_task(struct arena *arena, const struct run_settings *settings,
                   const struct node_order *order, struct run_plan *plan, struct error *error);
/* The command of a session of a task that runs, with the task's environment and directory; in its
 * container, where it has one. False with a reason. */
bool run_plan_session(struct arena *arena, const struct run_settings *settings,
                      const struct node_order *order, const struct session_open *open,
                      struct spec *command, struct error *error);
bool run_plan_slot(struct arena *arena, const struct run_settings *settings,
                   const struct node_order *order, struct run_plan *plan, struct error *error);

#endif
