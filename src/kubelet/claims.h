/* claims.h - the claims that a kubelet has prepared and unprepared on this node: a state machine */
#ifndef KUBELET_CLAIMS_H
#define KUBELET_CLAIMS_H

#include "kubelet/claim.h"

/* A kubelet prepares a claim before it starts the first pod with it, and unprepares it when the
 * last one has ended and before it says so. Both are repeated until they succeed, and after a
 * restart of either side, so both can be called at any time and any number of times.
 *
 * A claim is prepared when the memory that it allocates is free by a measurement that began after
 * the call: for each of its GPUs, overhead + foreign memory + the larger of reserved and measured
 * of each other owner + its own is at most the capacity. It is refused otherwise, with these
 * numbers, and nothing is kept of it. It is unprepared when a measurement that began after the call
 * shows none of its pods' memory, and no more unexplained memory than there was before it; after
 * `give_up_ms` without it being so, what is left counts as foreign; 5 s later at the latest, if
 * nothing can be measured.
 *
 * No clock and no I/O: what is to be done is told by callbacks, from within the calls below. A
 * callback must not call back. */
struct claims;

/* A GPU as last measured. */
struct claims_gpu {
	const char *uuid;
	int64_t capacity_mib, overhead_mib;
	int64_t foreign_mib;     /* of nobody that is known, and of pods with `is_foreign` */
	int64_t unexplained_mib; /* in use by no process that can be seen */
	bool is_present, is_healthy, is_mig_parent;
};

/* An owner on a GPU: a pod, or other work of the node. */
struct claims_owner {
	const char *uuid;
	const char *pod; /* its uid; "": it is no pod */
	int64_t reserved_mib, measured_mib;
	bool has_whole; /* nothing else may be on the GPU */
	/* It is a pod that the node has no order for, whose processes were measured; they are in
	 * the foreign memory of the GPU. */
	bool is_foreign;
};

struct claims_measured {
	int64_t number;
	const struct claims_gpu *gpus;
	int64_t gpu_count;
	const struct claims_owner *owners;
	int64_t owner_count;
};

struct claims_port {
	void *context;
	/* Asks for a measurement that begins after now; its number. */
	int64_t (*measure)(void *context);
	/* Asks for the object; answered by claims_fetched(). */
	void (*fetch)(void *context, const char *uid, const char *namespace, const char *name);
	/* Makes it last, and writes what a container runtime reads. False with a reason: neither is
	 * there. Again for a claim that was kept: the runtime's file is written again. */
	bool (*keep)(void *context, const struct claim *claim, struct error *error);
	/* Removes both. */
	void (*forget)(void *context, const char *uid);
	/* Answers a call about one claim: what is prepared (NULL: it was unprepared), or why
	 * not. */
	void (*answer)(void *context, int64_t call, const char *uid, const struct claim *claim,
	               const char *refusal);
	/* For the log: memory that did not come back. */
	void (*gave_up)(void *context, const struct claim *claim, const char *uuid,
	                int64_t memory_mib);
};

struct claims_settings {
	const char *pool;      /* the name of this node; lives as long as the claims */
	int64_t give_up_ms;    /* 0: 30 s */
	int64_t prepare_ms;    /* until a claim that could not be checked is refused; 0: 30 s */
	int64_t look_ms;       /* between measurements while memory is awaited; 0: 200 ms */
	int64_t tolerance_mib; /* unexplained memory that holds nothing up */
};

struct claims *claims_new(const struct claims_settings *settings, const struct claims_port *port);
/* Calls that are not answered are forgotten. */
void claims_free(struct claims *claims);

/* Before any call: a claim that was kept. It becomes the claims'. One that is known already is
 * freed. */
void claims_restore(struct claims *claims, struct claim *claim);

/* Calls of a kubelet, numbered by the caller. Answered at once, or later. */
void claims_prepare(struct claims *claims, int64_t now_ms, int64_t call, const char *uid,
                    const char *namespace, const char *name);
void claims_unprepare(struct claims *claims, int64_t now_ms, int64_t call, const char *uid);

/* Answers fetch(): the object as JSON, or why it could not be had. */
void claims_fetched(struct claims *claims, int64_t now_ms, const char *uid, struct text json,
                    const char *failure);
void claims_measured(struct claims *claims, int64_t now_ms, const struct claims_measured *measured);
void claims_time(struct claims *claims, int64_t now_ms);
/* MiB of a GPU that claims may have in sum: what neither the driver, nor strangers, nor work
 * without a claim has. */
int64_t claims_offer_mib(const struct claims *claims, const struct claims_measured *measured,
                         const struct claims_gpu *gpu);
/* When claims_time() is wanted at the latest. */
int64_t claims_wake_ms(const struct claims *claims);

/* For those who watch: prepared claims, those that are being unprepared too. */
int64_t claims_count(const struct claims *claims);
const struct claim *claims_at(const struct claims *claims, int64_t at);
/* Claims that are being prepared or unprepared. */
int64_t claims_pending(const struct claims *claims);

#endif
