"""load.py KIND SECONDS - a load on the GPU: 'matmul' (large matrix products), 'small' (short kernels, each
group waited for), 'fault' (reads where nothing is), 'idle' (a context and nothing else). Says 'ready',
begins at a line of input, and ends with one line of JSON. Without SECONDS it ends with its input."""

import json
import os
import sys
import threading
import time

import torch

KIND, SECONDS = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else None
LARGE, SMALL, GROUP = 8192, 512, 16


def until():
    end = None if SECONDS is None else time.monotonic() + SECONDS
    closed = threading.Event()
    if end is None:
        threading.Thread(target=lambda: (sys.stdin.read(), closed.set()), daemon=True).start()
    return lambda: closed.is_set() if end is None else time.monotonic() >= end


def matmul():
    a = torch.randn(LARGE, LARGE, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(LARGE, LARGE, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    for _ in range(3):
        torch.mm(a, b, out=out)
    torch.cuda.synchronize()
    ended = yield
    count, began = 0, time.monotonic()
    while not ended():
        for _ in range(4):
            torch.mm(a, b, out=out)
        torch.cuda.synchronize()
        count += 4
    yield {"tflops": 2 * LARGE**3 * count / (time.monotonic() - began) / 1e12}


def small():
    a = torch.randn(SMALL, SMALL, device="cuda")
    b, out = torch.randn_like(a), torch.empty_like(a)
    took = []
    for _ in range(100):
        torch.mm(a, b, out=out)
    torch.cuda.synchronize()
    ended = yield
    while not ended():
        began = time.perf_counter()
        for _ in range(GROUP):
            torch.mm(a, b, out=out)
        torch.cuda.synchronize()
        took.append((time.perf_counter() - began) * 1e3)
    took.sort()
    yield {"p50_ms": took[len(took) // 2], "p99_ms": took[len(took) * 99 // 100], "groups": len(took)}


def fault():
    a = torch.zeros(1024, device="cuda")
    torch.cuda.synchronize()
    yield
    far = torch.full((1024,), 1 << 40, dtype=torch.int64, device="cuda")
    torch.gather(a, 0, far)
    torch.cuda.synchronize()
    yield {}


def idle():
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    ended = yield
    while not ended():
        time.sleep(0.05)
    yield {}


def main():
    try:
        run = {"matmul": matmul, "small": small, "fault": fault, "idle": idle}[KIND]()
        next(run)
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        print(json.dumps({"ready": os.getpid(), "sms": sms}), flush=True)
        sys.stdin.readline()
        print(json.dumps(run.send(until())), flush=True)
    except Exception as error:  # what a client is told is what is asked for
        print(json.dumps({"error": str(error).splitlines()[0]}), flush=True)
        os._exit(1)


main()
