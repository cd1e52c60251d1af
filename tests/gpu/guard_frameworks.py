"""What frameworks do under the guard: each takes memory until it is refused, and goes on.

    guard_frameworks.py torch | jax | cupy | cupy_async | workers

Prints one JSON object. Run by tests/gpu/guard, under gpu-guard-run.
"""

import json
import os
import signal
import sys
import time

GIB = 1 << 30
MIB = 1 << 20


def fill(take, refusal):
    """Takes pieces of 512 MiB until `refusal` is raised; the pieces, and what it said."""
    held = []
    while len(held) < 1000:
        try:
            held.append(take(512 * MIB))
        except refusal as error:
            return held, str(error).splitlines()[0][:160]
    return held, "nothing"


def with_torch():
    import torch

    torch.cuda.init()
    free, total = torch.cuda.mem_get_info()
    properties = torch.cuda.get_device_properties(0).total_memory
    held, said = fill(lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"),
                      torch.OutOfMemoryError)
    taken = len(held)
    del held[taken // 2:]
    torch.cuda.empty_cache()
    a = torch.randn(2048, 2048, device="cuda")
    goes_on = bool(torch.isfinite((a @ a).sum()).item())
    return {"properties_mib": properties // MIB, "total_mib": total // MIB, "free_mib": free // MIB,
            "taken_mib": taken * 512, "said": said, "goes_on": goes_on}


def with_jax():
    import jax
    import jax.numpy as jnp

    device = jax.devices("gpu")[0]
    stats = device.memory_stats()

    def take(size):
        return jax.block_until_ready(jnp.zeros(size, dtype=jnp.uint8))

    held, said = fill(take, Exception)
    taken = len(held)
    del held[taken // 2:]
    a = jnp.ones((1024, 1024))
    goes_on = bool((a @ a)[0, 0] == 1024)
    return {"bytes_limit_mib": stats["bytes_limit"] // MIB, "taken_mib": taken * 512, "said": said,
            "goes_on": goes_on}


def with_cupy(asynchronous=False):
    import cupy

    if asynchronous:
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    free, total = cupy.cuda.runtime.memGetInfo()
    held, said = fill(lambda size: cupy.empty(size, dtype=cupy.uint8),
                      cupy.cuda.memory.OutOfMemoryError)
    taken = len(held)
    del held[taken // 2:]
    a = cupy.ones((1024, 1024), dtype=cupy.float32)
    goes_on = float((a @ a)[0, 0]) == 1024
    return {"total_mib": total // MIB, "free_mib": free // MIB, "taken_mib": taken * 512,
            "said": said, "goes_on": goes_on}


def take_all(number, taken, stop):
    """A worker: takes 256 MiB at a time until it is refused, and holds on to it."""
    import torch

    held = []
    try:
        while not stop.is_set() and len(held) < 1000:
            held.append(torch.empty(256 * MIB, dtype=torch.uint8, device="cuda"))
            taken[number] = len(held) * 256
            time.sleep(0.01)
    except torch.OutOfMemoryError:
        pass
    while not stop.is_set():
        time.sleep(0.05)


def share_one(queue, done):
    """A worker that hands a tensor on the GPU to its parent."""
    import torch

    tensor = torch.full((512 * MIB,), 7, dtype=torch.uint8, device="cuda")
    queue.put(tensor)
    done.wait()


def with_workers():
    """Four processes share one budget; one is killed, and its share comes back; a tensor that
    two of them share counts once."""
    import torch
    import torch.multiprocessing as multiprocessing

    context = multiprocessing.get_context("spawn")
    taken = context.Array("q", 4)
    stop = context.Event()
    workers = [context.Process(target=take_all, args=(i, taken, stop)) for i in range(4)]
    for worker in workers:
        worker.start()
    before = -1
    deadline = time.monotonic() + 90
    while (sum(taken) != before or before == 0) and time.monotonic() < deadline:
        before = sum(taken)
        time.sleep(6)
    in_all = sum(taken)
    torch.cuda.init()
    free, total = torch.cuda.mem_get_info()
    victim = taken[0]
    os.kill(workers[0].pid, signal.SIGKILL)
    workers[0].join()
    free_after, _ = torch.cuda.mem_get_info()
    stop.set()
    for worker in workers[1:]:
        worker.join()

    queue = context.Queue()
    done = context.Event()
    giver = context.Process(target=share_one, args=(queue, done))
    giver.start()
    tensor = queue.get()
    free_with, _ = torch.cuda.mem_get_info()
    right = int(tensor[12345].item()) == 7
    del tensor
    done.set()
    giver.join()
    return {"total_mib": total // MIB, "taken_together_mib": in_all, "free_when_full_mib": free // MIB,
            "victim_mib": victim, "free_after_kill_mib": free_after // MIB,
            "free_with_shared_512_mib": free_with // MIB, "shared_tensor_is_right": right}


def main():
    ways = {"torch": with_torch, "jax": with_jax, "cupy": with_cupy,
            "cupy_async": lambda: with_cupy(True), "workers": with_workers}
    print(json.dumps(ways[sys.argv[1]]()))


if __name__ == "__main__":
    main()
