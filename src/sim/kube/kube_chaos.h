/* kube_chaos.h - the real scheduler of pods beside an API server, kubelets and people that fail */
#ifndef SIM_KUBE_KUBE_CHAOS_H
#define SIM_KUBE_KUBE_CHAOS_H

#include "sim/chaos/chaos.h"

/* What can go wrong there. */
enum kube_class {
	KUBE_DOWN,       /* the API server does not answer for minutes */
	KUBE_RESTART,    /* it restarts: all connections end */
	KUBE_ROLLBACK,   /* its store is set back to an earlier state */
	KUBE_WATCH,      /* watches end in the middle of an event, or say nothing for a while */
	KUBE_FORGET,     /* it forgets versions, so that watches and pages get 410 */
	KUBE_ANSWER,     /* 409, 422, 429, 5xx */
	KUBE_TIMEOUT,    /* an answer does not come, whether or not the write happened */
	KUBE_FORCE,      /* pods are deleted by force */
	KUBE_NODE,       /* nodes lose power and come back, or are removed */
	KUBE_HANG,       /* kubelets do nothing for a while */
	KUBE_KILL,       /* the scheduler is killed between deciding, storing and telling */
	KUBE_SECOND,     /* another takes over from a scheduler that does not know it */
	KUBE_OTHER,      /* another scheduler binds pods */
	KUBE_IMPATIENCE, /* people delete pods, and cancel, hold and requeue jobs */
	KUBE_CLASSES,
};
extern const char *const kube_class_names[KUBE_CLASSES];

/* One run, in this process. `without` is of enum kube_class; the result counts bindings as
 * starts. */
void kube_chaos_run(const struct chaos_options *options, struct chaos_result *result);

/* gpu-sim chaos, with --kubernetes or without. */
int kube_chaos_main(int argc, char **argv);

#endif
