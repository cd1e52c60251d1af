/* commands.h - the commands of gpu-cli, each in the file that is called after it or its kind */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"
#include "cli/listing.h"

extern const struct cli_command submit_command, run_command, list_command, get_command,
    logs_command, why_command, queue_command;
extern const struct cli_command resubmit_command, clone_command, edit_command, whoami_command,
    audit_command, events_command;
extern const struct cli_command exec_command, attach_command, forward_command, notebook_command;
extern const struct cli_command cancel_command, hold_command, release_command, requeue_command,
    suspend_command, priority_command;
extern const struct cli_command status_command, nodes_command, gpus_command, drain_command,
    resume_command;
extern const struct cli_command tenants_command, create_tenant_command, quota_command;
extern const struct cli_command models_command, slots_command, decisions_command, report_command,
    token_command, config_command, login_command, logout_command, top_command;
/* What top shows as well. */
extern const struct listing_source queue_source, tenants_source, models_source, nodes_source;
extern const struct cli_command reserve_command;
extern const struct cli_command ask_command, chat_command;
extern const struct cli_command estimate_command, completion_command, complete_command,
    version_command;

#endif
