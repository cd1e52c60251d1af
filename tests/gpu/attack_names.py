"""The attacks of attack.py, by name."""

ATTACKS = ["plain", "fdstash", "fdsocket", "fdsibling", "importnomap", "hide", "heap", "printf", "stacks",
           "modules", "local", "graph", "graphs", "capture", "thin", "thinlayers", "thinmipmaps", "fragments",
           "threads", "managedpool", "cleaned", "unset", "deepbind", "dlmopen", "contexts", "swarm", "relay",
           "killed", "reexec", "orphans", "ipcstash", "poolexport", "streams", "libraries", "managedglobals",
           "pitch", "pending"]

# These leave the guard: it cannot refuse what they take, and the agent stops them.
LEAVING = ["rawsymbol", "rawexec", "tamper", "remap"]
