/* orchestrator.h - nodes whose work somebody else starts */
#ifndef CORE_RECORD_ORCHESTRATOR_H
#define CORE_RECORD_ORCHESTRATOR_H

/* A node with this label takes tasks with a node class alone: those that its orchestrator starts.
 * Other jobs and models never go there. */
#define NODE_ORCHESTRATOR "gpu-scheduler.io/orchestrator"
/* The boot of such a node that has no agent: it is not a node that is silent. */
#define NODE_BOOT_KUBERNETES "kubernetes"

#endif
