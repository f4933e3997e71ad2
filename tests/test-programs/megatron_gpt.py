# SPDX-License-Identifier: Apache-2.0
"""A GPT of Megatron-Core, dense or with experts, on mock data: every axis of parallelism that its flags name, the distributed
optimizer or a plain one, two steps. The arguments have the names that Megatron-LM gives them.

    megatron_gpt.py [--tensor-model-parallel-size 2] [--pipeline-model-parallel-size 2] [--virtual-pipeline-model-parallel-size 2]
                    [--num-experts 8] ...

Layers are Megatron-Core's own ("local"), since Transformer Engine has to be built; its norms refuse sequence parallelism
without Apex, so the spec here brings one that marks its parameters as the others do. Context parallelism they refuse.
"""
import argparse
import os
import warnings

warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import parallel_state as mpu  # noqa: E402
from megatron.core import tensor_parallel  # noqa: E402
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads  # noqa: E402
from megatron.core.models.gpt import GPTModel  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: E402
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer  # noqa: E402
from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: E402
from megatron.core.transformer import TransformerConfig  # noqa: E402
from megatron.core.transformer.module import Float16Module  # noqa: E402
from megatron.core.transformer.moe import moe_utils  # noqa: E402
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules  # noqa: E402

from say import say  # noqa: E402

if not hasattr(moe_utils, "te_general_gemm"):
    moe_utils.te_general_gemm = None  # the router of 0.16 asks for it even where there is no Transformer Engine


class Norm(torch.nn.LayerNorm):
    """LayerNorm over tokens that sequence parallelism has cut: its gradients are summed over the tensor-parallel group."""

    def __init__(self, config, hidden_size, eps=1e-5, **_):
        super().__init__(hidden_size, eps=eps)
        for parameter in self.parameters():
            parameter.sequence_parallel = config.sequence_parallel


def arguments():
    p = argparse.ArgumentParser()
    for name, value in (("tensor-model-parallel-size", 1), ("pipeline-model-parallel-size", 1),
                        ("virtual-pipeline-model-parallel-size", 0), ("expert-model-parallel-size", 1), ("num-experts", 0),
                        ("moe-router-topk", 2), ("num-layers", 4),
                        ("hidden-size", 256), ("num-attention-heads", 8), ("seq-length", 256), ("micro-batch-size", 2),
                        ("num-microbatches", 4), ("vocab-size", 1024), ("train-iters", 2)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--clip-grad", type=float, default=1.0)
    p.add_argument("--moe-token-dispatcher-type", default="alltoall", choices=("alltoall", "allgather"))
    p.add_argument("--moe-pad-expert-input-to-capacity", action="store_true")
    p.add_argument("--no-distributed-optimizer", action="store_true")
    p.add_argument("--recompute-granularity", choices=("full", "selective"))
    p.add_argument("--recompute-method", choices=("uniform", "block"))
    p.add_argument("--recompute-num-layers", type=int)
    p.add_argument("--recompute-modules", nargs="+")
    return p.parse_args()


def configuration(a):
    moe = {}
    if a.num_experts:
        moe = {"num_moe_experts": a.num_experts, "moe_router_topk": a.moe_router_topk, "moe_router_load_balancing_type": "aux_loss",
               "moe_aux_loss_coeff": 1e-2, "moe_token_dispatcher_type": a.moe_token_dispatcher_type, "add_bias_linear": False,
               "moe_ffn_hidden_size": a.hidden_size * 2}
        if a.moe_pad_expert_input_to_capacity:
            moe |= {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True}
    return TransformerConfig(
        num_layers=a.num_layers, hidden_size=a.hidden_size, num_attention_heads=a.num_attention_heads,
        tensor_model_parallel_size=a.tensor_model_parallel_size, pipeline_model_parallel_size=a.pipeline_model_parallel_size,
        virtual_pipeline_model_parallel_size=a.virtual_pipeline_model_parallel_size or None,
        expert_model_parallel_size=a.expert_model_parallel_size, expert_tensor_parallel_size=1 if a.num_experts else None,
        sequence_parallel=a.tensor_model_parallel_size > 1, bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16,
        hidden_dropout=0.0, attention_dropout=0.0, bias_dropout_fusion=False, bias_activation_fusion=False,
        gradient_accumulation_fusion=False, recompute_granularity=a.recompute_granularity, recompute_method=a.recompute_method,
        recompute_num_layers=a.recompute_num_layers, recompute_modules=a.recompute_modules, **moe)


def layers(config):
    spec = get_gpt_layer_local_spec(num_experts=config.num_moe_experts)
    spec.submodules.input_layernorm = spec.submodules.pre_mlp_layernorm = Norm
    here = config.num_layers // config.pipeline_model_parallel_size // (config.virtual_pipeline_model_parallel_size or 1)
    return TransformerBlockSubmodules(layer_specs=[spec] * here, layer_norm=Norm)


def build(a, config):
    """The chunks of this rank: one, or as many as there are virtual stages."""
    settings = DistributedDataParallelConfig(grad_reduce_in_fp32=True, use_distributed_optimizer=not a.no_distributed_optimizer)
    chunks = []
    for stage in range(config.virtual_pipeline_model_parallel_size or 1):
        vp = stage if config.virtual_pipeline_model_parallel_size else None
        model = GPTModel(config, layers(config), a.vocab_size, a.seq_length, share_embeddings_and_output_weights=False, vp_stage=vp,
                         pre_process=mpu.is_pipeline_first_stage(ignore_virtual=vp is None, vp_stage=vp),
                         post_process=mpu.is_pipeline_last_stage(ignore_virtual=vp is None, vp_stage=vp))
        chunks.append(DistributedDataParallel(config, settings, Float16Module(config, model.to("cuda"))))
    return chunks


def batches(a):
    """The same tokens for ever; what a rank's own shard of a data set would be."""
    cut = torch.Generator().manual_seed(1 + mpu.get_data_parallel_rank())
    tokens = torch.randint(0, a.vocab_size, (a.micro_batch_size, a.seq_length + 1), generator=cut)
    places = torch.arange(a.seq_length).expand(a.micro_batch_size, -1)
    mask = torch.ones(1, 1, a.seq_length, a.seq_length, dtype=torch.bool).triu(1)
    while True:
        yield [x.contiguous().cuda() for x in (tokens[:, :-1], tokens[:, 1:], places, mask)]


def loss_of(losses):
    loss = losses.float().mean()
    return loss, {"lm loss": loss.detach()}


def forward(data, model):
    tokens, labels, places, mask = next(data)
    return model(tokens, places, mask, labels=labels), loss_of


def train(a, model, config):
    optimizer = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16, clip_grad=a.clip_grad,
                        use_distributed_optimizer=not a.no_distributed_optimizer), model, use_gloo_process_groups=False)
    config.grad_scale_func = optimizer.scale_loss
    config.finalize_model_grads_func = finalize_model_grads
    schedule = get_forward_backward_func()
    for _ in range(a.train_iters):
        for chunk in model:
            chunk.zero_grad_buffer()
        optimizer.zero_grad()
        losses = schedule(forward_step_func=forward, data_iterator=[batches(a) for _ in model], model=model,
                          num_microbatches=a.num_microbatches, seq_length=a.seq_length, micro_batch_size=a.micro_batch_size, forward_only=False)
        done, _, _ = optimizer.step()
        assert done, "the step was left out"
        if losses:
            mean = torch.stack([x["lm loss"] for x in losses]).mean()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG, group=mpu.get_data_parallel_group())
            mean.item()


def main():
    a = arguments()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    mpu.initialize_model_parallel(
        tensor_model_parallel_size=a.tensor_model_parallel_size, pipeline_model_parallel_size=a.pipeline_model_parallel_size,
        virtual_pipeline_model_parallel_size=a.virtual_pipeline_model_parallel_size or None,
        expert_model_parallel_size=a.expert_model_parallel_size, expert_tensor_parallel_size=1 if a.num_experts else None,
        create_gloo_process_groups=False)
    tensor_parallel.model_parallel_cuda_manual_seed(123)
    config = configuration(a)
    train(a, build(a, config), config)
    say("rank", dist.get_rank(), "of", dist.get_world_size(), "peak", torch.cuda.max_memory_allocated())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
