"""What frameworks do under the guard: each takes memory until it is refused, and goes on.

    guard_frameworks.py torch | jax | cupy | cupy_async | loader | workers

Prints one JSON object. Run by guard_report.py, under gpu-guard-run.
"""

import json
import os
import signal
import sys
import time

GIB = 1 << 30
MIB = 1 << 20


HOLD_S = 2  # how long everything is held that could be had, so that nvidia-smi sees it


def fill(take, refusal):
    """Takes pieces of 512 MiB until `refusal` is raised; the pieces, and what it said."""
    held = []
    said = "nothing"
    while len(held) < 1000:
        try:
            held.append(take(512 * MIB))
        except refusal as error:
            said = first_sentence(error)
            break
    time.sleep(HOLD_S)
    return held, said


def first_sentence(error):
    return str(error).splitlines()[0].split(". ")[0][:120]


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
    return {"shown_mib": properties // MIB, "total_mib": total // MIB, "free_mib": free // MIB,
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
    # Not every allocator of JAX keeps statistics.
    itself = f"{stats['bytes_limit'] // MIB} for its pool" if stats else ""
    return {"free_mib": itself, "taken_mib": taken * 512, "said": said, "goes_on": goes_on}


def with_cupy(asynchronous=False):
    import cupy

    if asynchronous:
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    free, total = cupy.cuda.runtime.memGetInfo()
    properties = cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"]
    held, said = fill(lambda size: cupy.empty(size, dtype=cupy.uint8),
                      cupy.cuda.memory.OutOfMemoryError)
    taken = len(held)
    del held[taken // 2:]
    a = cupy.ones((1024, 1024), dtype=cupy.float32)
    goes_on = float((a @ a)[0, 0]) == 1024
    return {"shown_mib": properties // MIB, "total_mib": total // MIB, "free_mib": free // MIB,
            "taken_mib": taken * 512, "said": said, "goes_on": goes_on}


class Cached:
    """A data set whose workers keep each item on the GPU; an item is what one worker has got."""

    def __init__(self):
        self.held = []

    def __len__(self):
        return 180

    def __getitem__(self, index):
        import torch

        try:
            self.held.append(torch.empty(256 * MIB, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError as error:
            return os.getpid(), len(self.held), first_sentence(error)
        return os.getpid(), len(self.held), ""


def with_loader():
    import torch
    import torch.utils.data

    loader = torch.utils.data.DataLoader(Cached(), batch_size=None, num_workers=3,
                                         multiprocessing_context="spawn")
    held = {}
    refusals = []
    for pid, count, said in loader:
        held[pid] = count
        refusals += [said] if said else []
    a = torch.randn(64, 64)
    goes_on = len(held) == 3 and bool(torch.isfinite((a @ a).sum()).item())
    # The workers have ended with their loader: all is free again.
    del loader
    goes_on = goes_on and torch.empty(4 * GIB, dtype=torch.uint8, device="cuda").numel() == 4 * GIB
    return {"taken_mib": sum(held.values()) * 256, "said": refusals[0] if refusals else "nothing",
            "goes_on": goes_on}


def take_all(number, taken, barrier, stop):
    """A worker: takes 256 MiB at a time until it is refused, and holds on to it."""
    import torch

    # All have their contexts before anybody takes the rest.
    held = [torch.empty(MIB, dtype=torch.uint8, device="cuda")]
    barrier.wait()
    try:
        while not stop.is_set() and len(held) < 1000:
            held.append(torch.empty(256 * MIB, dtype=torch.uint8, device="cuda"))
            taken[number] = (len(held) - 1) * 256
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
    done.wait(60)


def with_workers():
    """Four processes share one budget; one is killed, and its share comes back; a tensor that
    two of them share counts once."""
    import torch
    import torch.multiprocessing as multiprocessing

    context = multiprocessing.get_context("spawn")
    taken = context.Array("q", 4)
    stop = context.Event()
    barrier = context.Barrier(4, timeout=60)
    # This process has its context before the others take everything.
    torch.cuda.mem_get_info()
    workers = [context.Process(target=take_all, args=(i, taken, barrier, stop)) for i in range(4)]
    for worker in workers:
        worker.start()
    before = -1
    deadline = time.monotonic() + 60
    while (sum(taken) != before or before == 0) and time.monotonic() < deadline:
        before = sum(taken)
        time.sleep(1.5)
    in_all = sum(taken)
    free, total = torch.cuda.mem_get_info()
    victim = taken[0]
    os.kill(workers[0].pid, signal.SIGKILL)
    workers[0].join()
    free_after, _ = torch.cuda.mem_get_info()
    stop.set()
    for worker in workers[1:]:
        worker.join()

    time.sleep(2.5)
    torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    free_before, _ = torch.cuda.mem_get_info()
    queue = context.Queue()
    done = context.Event()
    giver = context.Process(target=share_one, args=(queue, done))
    giver.start()
    tensor = queue.get(timeout=60)
    # What this process holds by now is measured with its next allocation.
    time.sleep(2.5)
    torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    free_with, _ = torch.cuda.mem_get_info()
    right = int(tensor[12345].item()) == 7
    del tensor
    done.set()
    giver.join()
    return {"total_mib": total // MIB, "taken_together_mib": in_all, "free_when_full_mib": free // MIB,
            "victim_mib": victim, "free_after_kill_mib": free_after // MIB,
            "shared_512_took_mib": (free_before - free_with) // MIB,
            "context_mib": (total - free_before) // MIB, "shared_tensor_is_right": right}


def main():
    ways = {"torch": with_torch, "jax": with_jax, "cupy": with_cupy,
            "cupy_async": lambda: with_cupy(True), "loader": with_loader, "workers": with_workers}
    print(json.dumps(ways[sys.argv[1]]()))


if __name__ == "__main__":
    main()
