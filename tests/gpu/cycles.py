"""cycles.py torch|jax|cupy CYCLES - fills the GPU memory of its job until it is refused, loads kernels
that it has not used yet while it is full, frees all of it, and begins again. Says at the end how often
it was refused."""

import sys

MIB = 1 << 20


def fill(take, refusal):
    """Takes large pieces until they are refused, then small ones; what it got."""
    held = []
    for size in (1024 * MIB, 128 * MIB):
        while True:
            try:
                held.append(take(size))
            except refusal:
                break
    return held


def with_torch(cycles):
    import torch

    kinds = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
    works = [lambda a: a @ a, lambda a: torch.softmax(a, 0), lambda a: a.cumsum(0), lambda a: a.sort()[0],
             lambda a: torch.nn.functional.conv2d(a[None, None, :64, :64], a[None, None, :3, :3]),
             lambda a: a.exp().sum(), lambda a: a.topk(5)[0], lambda a: (a > 0).nonzero()]
    refused = 0
    for cycle in range(cycles):
        held = fill(lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"),
                    torch.OutOfMemoryError)
        refused += 2
        del held[-3:]
        torch.cuda.empty_cache()  # what kernels and handles of libraries need comes from the driver
        a = torch.ones(512, 512, dtype=kinds[cycle // len(works) % len(kinds)], device="cuda")
        works[cycle % len(works)](a)
        torch.cuda.synchronize()
        del held, a
        torch.cuda.empty_cache()
    return refused


def with_jax(cycles):
    import jax
    import jax.numpy as jnp

    works = [lambda a: a @ a, lambda a: jnp.sort(a), lambda a: jnp.cumsum(a), lambda a: jnp.exp(a).sum(),
             lambda a: jnp.fft.fft(a), lambda a: jnp.tanh(a) * a]
    refused = 0
    for cycle in range(cycles):
        held = fill(lambda size: jax.block_until_ready(jnp.zeros(size, dtype=jnp.uint8)), Exception)
        refused += 2
        held.pop()
        jax.block_until_ready(works[cycle % len(works)](jnp.ones((256, 256 + cycle // len(works)),
                                                                 dtype=jnp.float32))
                              if cycle % len(works) else works[0](jnp.ones((256, 256))))
        del held
    return refused


def with_cupy(cycles):
    import cupy

    works = [lambda a: a @ a, lambda a: cupy.sort(a), lambda a: cupy.cumsum(a), lambda a: cupy.exp(a).sum(),
             lambda a: cupy.fft.fft(a), lambda a: cupy.argsort(a)]
    kinds = [cupy.float32, cupy.float64]
    refused = 0
    for cycle in range(cycles):
        held = fill(lambda size: cupy.empty(size, dtype=cupy.uint8), cupy.cuda.memory.OutOfMemoryError)
        refused += 2
        held.pop()
        cupy.get_default_memory_pool().free_all_blocks()
        works[cycle % len(works)](cupy.ones((256, 256), dtype=kinds[cycle // len(works) % len(kinds)]))
        cupy.cuda.runtime.deviceSynchronize()
        del held
        cupy.get_default_memory_pool().free_all_blocks()
    return refused


def main():
    run = {"torch": with_torch, "jax": with_jax, "cupy": with_cupy}[sys.argv[1]]
    cycles = int(sys.argv[2])
    print(f"{cycles} cycles, refused {run(cycles)} times", flush=True)


main()
