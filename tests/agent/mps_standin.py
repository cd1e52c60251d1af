#!/usr/bin/env python3
"""A stand-in for nvidia-cuda-mps-control: -d starts a daemon with a server below it, and the command
'quit' ends them. As of the real one, its pid is in the pipe directory."""

import os
import pathlib
import signal
import sys
import time

PIPE = pathlib.Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
LOG = pathlib.Path(os.environ["CUDA_MPS_LOG_DIRECTORY"])
PID = PIPE / "nvidia-cuda-mps-control.pid"
STOP = {signal.SIGTERM}


def serve():
    """The daemon: waits for its end, and ends its server."""
    server = os.fork()
    if server == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)
        while True:
            signal.pause()
    with open(LOG / "control.log", "a") as log:
        log.write(f"started {' '.join(sys.argv[1:])} for {os.environ['CUDA_VISIBLE_DEVICES']}\n")
    (PIPE / "pid.new").write_text(f"{os.getpid()}\n")
    (PIPE / "pid.new").rename(PID)
    signal.sigwait(STOP)
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    PID.unlink(missing_ok=True)
    os._exit(0)


def start():
    ready, done = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    if os.fork() == 0:
        os.setsid()
        os.close(ready)
        if os.fork() == 0:
            try:
                serve()
            finally:
                os._exit(1)
        while not PID.exists():
            time.sleep(0.005)
        os.write(done, b"1")
        os._exit(0)
    os.close(done)
    os.wait()
    return 0 if os.read(ready, 1) else 1


def ask(command):
    daemon = int(PID.read_text())
    if command.startswith("quit"):
        os.kill(daemon, signal.SIGTERM)
        while PID.exists():
            time.sleep(0.005)
    return 0


if __name__ == "__main__":
    sys.exit(start() if "-d" in sys.argv else ask(sys.stdin.readline()))
