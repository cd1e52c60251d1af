/* cdi_files.h - the files of prepared claims: what is kept, and what a container runtime reads */
#ifndef AGENT_KUBELET_CDI_FILES_H
#define AGENT_KUBELET_CDI_FILES_H

#include "agent/gpu/gpu_source.h"
#include "kubelet/claim.h"

struct cdi_files;

struct cdi_files_settings {
	const char *state_directory; /* where claims are kept, in claims/ */
	const char *cdi_directory;   /* where the container runtime looks */
	const char *root;            /* where the node's / is mounted; "": it is ours */
	struct gpu_source *source;   /* for the device files of GPUs */
};

/* Makes the directories. NULL with a reason. */
struct cdi_files *cdi_files_new(const struct cdi_files_settings *settings, struct error *error);
void cdi_files_free(struct cdi_files *files);

/* Gives all claims that were kept. A file that cannot be read is logged, and stays. Files for
 * runtimes of claims that were not kept are removed. */
void cdi_files_load(struct cdi_files *files, void (*each)(void *context, struct claim *claim),
                    void *context);
/* As in struct claims_port. */
bool cdi_files_keep(struct cdi_files *files, const struct claim *claim, struct error *error);
void cdi_files_forget(struct cdi_files *files, const char *uid);

#endif
