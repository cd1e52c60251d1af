/* accounts.h - what each GPU of a node has on it, for those who admit what the node has no order
 * for
 */
#ifndef NODE_ACCOUNTS_H
#define NODE_ACCOUNTS_H

#include "node/node.h"

/* A GPU as last measured. Of what is in use, `foreign_mib` belongs to nobody that the node knows;
 * it has what no process explains, unless that is charged to work that is being released. */
struct gpu_account {
	struct gpu_reading reading;
	bool present;
	int64_t foreign_mib, unexplained_mib;
};

/* A work that counts on a GPU: what it has reserved there, and what it was measured to use. */
struct owner_account {
	const char *uuid;
	int64_t reservation_id;
	const char *pod; /* uid of the pod that it is; "": it is none */
	int64_t reserved_mib, measured_mib;
	bool whole; /* nothing else may be on the GPU */
};

/* Appends one of each. Texts live until the next input. */
void node_accounts(const struct local_node *node, struct buffer *gpus, struct buffer *owners);

#endif
