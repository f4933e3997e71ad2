# SPDX-License-Identifier: Apache-2.0
"""The GPT cut into stages (torch.distributed.pipelining, 1F1B), each stage cut by columns and rows: pipeline and tensor parallelism."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from gpt import GPT, optimizer_of
from say import say

TENSOR, MICROBATCHES = 2, 4


class Stage(nn.Module):
    """Some blocks of the whole; the first has the embedding, the last the head."""

    def __init__(self, whole, first, last, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.tokens, self.places = (whole.tokens, whole.places) if first else (None, None)
        self.norm, self.head = (whole.norm, whole.head) if last else (None, None)

    def forward(self, x):
        if self.tokens is not None:
            x = self.tokens(x) + self.places.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(self.norm(x))


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def main():
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    device = torch.device("cuda", torch.cuda.current_device())
    dist.init_process_group("nccl", device_id=device)
    stages = max(1, dist.get_world_size() // TENSOR)
    mesh = init_device_mesh("cuda", (stages, dist.get_world_size() // stages), mesh_dim_names=("pipeline", "tensor"))
    index = mesh["pipeline"].get_local_rank()
    torch.manual_seed(0)
    whole = GPT(layers=2 * stages)
    model = Stage(whole, index == 0, index == stages - 1, whole.blocks[2 * index:2 * index + 2]).to(device)
    for block in model.blocks:
        parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    optimizer = optimizer_of("loop", model.parameters())
    schedule = Schedule1F1B(PipelineStage(model, index, stages, device, group=mesh["pipeline"].get_group()), MICROBATCHES,
                            loss_fn=loss_of)
    tokens = torch.randint(0, 512, (8, 129), generator=torch.Generator().manual_seed(1)).to(device)
    for _ in range(3):
        first = (tokens[:, :-1].contiguous(),) if index == 0 else ()
        last = {"target": tokens[:, 1:].contiguous(), "losses": []} if index == stages - 1 else {}
        schedule.step(*first, **last)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    say("rank", dist.get_rank(), "of", dist.get_world_size(), "peak", torch.cuda.max_memory_allocated())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
