"""train.py STEPS - trains a small transformer on text made from a seed, the same each time, and prints
each loss in full. It holds 8 GiB besides, of which it checks the sum at the end."""

import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
WORDS, WIDTH, LENGTH, BATCH = 512, 512, 256, 16

torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
torch.backends.cuda.enable_flash_sdp(False)
torch.backends.cuda.enable_mem_efficient_sdp(False)
held = torch.randn(1 << 31, device="cuda")


def sum_of(tensor):
    """In parts, because each is copied to twice its size."""
    return sum(part.double().sum().item() for part in tensor.split(1 << 26))


held_sum = sum_of(held)

embed = nn.Embedding(WORDS, WIDTH).cuda()
layers = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.1, batch_first=True), 6).cuda()
head = nn.Linear(WIDTH, WORDS).cuda()
weights = [*embed.parameters(), *layers.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(weights, lr=3e-4)
mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, device="cuda")
following = torch.randint(WORDS, (WORDS,), device="cuda")

for step in range(STEPS):
    text = torch.randint(WORDS, (BATCH, 1), device="cuda")
    for _ in range(LENGTH):
        text = torch.cat([text, following[text[:, -1:]]], dim=1)
    out = head(layers(embed(text[:, :-1]), mask=mask, is_causal=True))
    loss = nn.functional.cross_entropy(out.reshape(-1, WORDS), text[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} {loss.item().hex()}", flush=True)
print("held", "right" if sum_of(held) == held_sum else "wrong", flush=True)
