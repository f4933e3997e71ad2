"""The GPT under fully_shard (FSDP2) over NCCL, each block and the whole."""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from gpt import GPT, optimizer_of, train


def main():
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = GPT().to("cuda")
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    train(model, optimizer_of("fused", model.parameters()), 3)
    print("rank", dist.get_rank(), "of", dist.get_world_size(), "peak", torch.cuda.max_memory_allocated())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
