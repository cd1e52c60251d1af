/* words.c - the names of the values of enums, apart from what works with them: interfaces that
 * only show them link no scheduler */
#include "core/record/record.h"

#define POLICY_NAME(symbol, name, ...) name,
const struct words policy_words = WORDS(PLACEMENT_POLICIES(POLICY_NAME));
const struct words window_repeat_words = WORDS("none", "daily", "weekly");
const struct words node_state_words = WORDS("online", "unknown", "lost");
const struct words gpu_kind_words = WORDS("none", "whole", "fraction", "memory", "uneven");
const struct words closeness_words = WORDS("any", "nvlink", "node", "rack");
const struct words lease_loss_words = WORDS("keep", "stop");
const struct words dependency_words = WORDS("success", "any");
const struct words job_state_words = WORDS("pending", "scheduled", "running", "preempted",
                                           "completed", "failed", "cancelled", "suspended");
const struct words task_state_words = WORDS("pending", "placed", "running", "stopping", "ended",
                                            "suspending", "suspended", "resuming");
const struct words phase_words =
    WORDS("claim", "held", "live", "releasing", "suspending", "suspended", "waking", "resuming");
const struct words suspend_words = WORDS("auto", "always", "never");
const struct words sharing_compute_words = WORDS("none", "mps");
const struct words decision_words =
    WORDS("start", "claim", "reclaim", "preempt", "move", "wait", "promise", "evicted", "lapsed",
          "gang", "grow", "evict", "load", "unload", "adopt", "fail", "share", "suspended",
          "resume", "close", "reopen", "awaited", "sleep", "wake");
const struct words time_sharing_words = WORDS("off", "attained_service", "predicted_service");
const struct words runtime_words = WORDS("vllm", "ollama", "llama.cpp", "custom");
const struct words slot_policy_words = WORDS("spread", "pack");
const struct words keep_alive_words = WORDS("comment", "chunk", "off");
const struct words model_sleep_words = WORDS("off", "driver");
const struct words slot_state_words =
    WORDS("waiting", "placed", "loading", "ready", "stopping", "sleeping", "asleep", "waking");
const struct words task_notice_words = WORDS("over", "idle", "unguarded", "crowded", "unexplained");
const struct words run_ending_words =
    WORDS("goes_on", "completed", "failed", "preempted", "requeued", "node_lost", "cancelled",
          "refused", "withdrawn", "unloaded", "suspended");
const struct words request_end_words = WORDS("succeeded", "failed", "gone");
