# SPDX-License-Identifier: Apache-2.0
"""The GPT under DistributedDataParallel over NCCL; the launcher's environment says who is who."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpt import GPT, optimizer_of, train
from say import say


def main():
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    torch.manual_seed(0)
    model = DistributedDataParallel(GPT().to("cuda"))
    train(model, optimizer_of("fused", model.parameters()), 3)
    total = torch.ones(1 << 20, device="cuda")
    dist.all_reduce(total)
    dist.barrier()
    say("rank", dist.get_rank(), "of", dist.get_world_size(), "peak", torch.cuda.max_memory_allocated())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
