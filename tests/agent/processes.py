"""What runs on this machine."""

import pathlib


def alive(marker):
    """Processes with this text in their command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found
