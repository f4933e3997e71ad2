# SPDX-License-Identifier: Apache-2.0
"""A training script as they are: a small GPT under DistributedDataParallel over NCCL, bf16, AdamW. It knows nothing of maquette.

On GPUs:          torchrun --nproc-per-node 8 examples/train.py
Without any:      maquette run --world 8192 --rank 4095 -- python3 examples/train.py
"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

WIDTH, HEADS, LAYERS, VOCABULARY, BATCH, LENGTH, STEPS = 1024, 16, 4, 32000, 2, 1024, 3


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.layers(self.embedding(tokens), mask, is_causal=True))


def main():
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    model = DistributedDataParallel(Gpt().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for _ in range(STEPS):
        tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1), device=device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB at most")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
