"""The attacks of attack.py, by name."""

ATTACKS = ["plain", "fdstash", "fdsocket", "fdsibling", "importnomap", "hide", "heap", "printf", "stacks",
           "modules", "local", "graph", "graphs", "capture", "thin", "thinlayers", "thinmipmaps", "fragments",
           "threads", "managedpool", "cleaned", "unset", "deepbind", "dlmopen"]
