# SPDX-License-Identifier: Apache-2.0
"""One rank of a job of the matrix, as people write it: a model of the transformers library in a loop of their own, or in its Trainer.

    program.py JOB.json     a job as table.py has it

Nothing here knows of maquette. At the end it prints what PyTorch's allocator counted, as JSON behind the word FIGURES.
"""
import functools
import json
import os
import select
import sys
import tempfile

import torch
import torch.distributed as dist
import transformers

STEPS = 4
# DistributedDataParallel builds its buckets anew in the second step, and the old ones live until the watchdog of its process group looks again,
# ten times a second. Steps on a GPU take that long; here there is a pause, and what counts is what follows. It waits for a descriptor: a
# sleep of a thread that drives the zero-GPU device takes virtual time, and the watchdog is on the real clock.
FIRST, PAUSE = 2, 1.0


def config_of(keys):
    keys = dict(keys)
    family = keys.pop("model_type")
    return transformers.AutoConfig.for_model(family, use_cache=False, attn_implementation=keys.pop("attention", "sdpa"), **keys)


def model_of(job, dtype=torch.float32):
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config_of(job["model"]), dtype=dtype)


def layers_of(model):
    return model.get_decoder().layers


def batch_of(job):
    at = torch.randint(0, job["model"]["vocab_size"], (job["mbs"], job["seq"]), device="cuda")
    return {"input_ids": at, "labels": at}


# ---- recomputation ----

def checkpoint_by_op(layers):
    """Selective checkpointing with the policy of torchtitan: every second product is recomputed."""
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    kept = {torch.ops.aten._scaled_dot_product_flash_attention.default, torch.ops.aten._scaled_dot_product_efficient_attention.default,
            torch.ops.aten._scaled_dot_product_cudnn_attention.default, torch.ops._c10d_functional.reduce_scatter_tensor.default}

    def contexts():
        count = {True: 0, False: 0}

        def policy(context, op, *args, **kwargs):
            product = op in (torch.ops.aten.mm.default, torch.ops.aten.linear.default)
            count[context.is_recompute] += product
            keep = op in kept or (product and count[context.is_recompute] % 2 == 1)
            return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)

    for i, layer in enumerate(layers):
        layers[i] = checkpoint_wrapper(layer, context_fn=contexts, preserve_rng_state=False)


def checkpoint(job, model):
    if job.get("ac") == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
        if job["way"].startswith("lora"):
            model.enable_input_require_grads()
    elif job.get("ac") == "op":
        checkpoint_by_op(layers_of(model))


# ---- ways to train ----

def ddp(job):
    from torch.nn.parallel import DistributedDataParallel
    model = model_of(job, torch.bfloat16 if job.get("pure") else torch.float32).to("cuda")
    checkpoint(job, model)
    return DistributedDataParallel(model, device_ids=[torch.cuda.current_device()], gradient_as_bucket_view=job.get("views", False))


def fsdp2(job):
    """No rank ever holds the whole model: it is made without memory, cut, and then filled."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    with torch.device("meta"):
        model = model_of(job, torch.bfloat16 if job.get("pure") else torch.float32)
    checkpoint(job, model)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32 if job.get("reduce") == "fp32" else None)
    if job.get("pure"):
        policy = MixedPrecisionPolicy()
    options = {"mp_policy": policy, "reshard_after_forward": job.get("reshard", True)}
    for layer in layers_of(model):
        if job.get("compile"):
            layer.compile()
        fully_shard(layer, **options)
    fully_shard(model, **options)
    model.to_empty(device="cuda")
    with torch.no_grad():
        model.apply(model._init_weights)
    return model


def fsdp1(job):
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
    model = model_of(job)
    reduce = torch.float32 if job.get("reduce") == "fp32" else torch.bfloat16
    strategy = ShardingStrategy.FULL_SHARD if job.get("reshard", True) else ShardingStrategy.SHARD_GRAD_OP
    wrap = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={type(layers_of(model)[0])})
    checkpoint(job, model)
    return FullyShardedDataParallel(model, auto_wrap_policy=wrap, sharding_strategy=strategy, use_orig_params=True,
                                    device_id=torch.cuda.current_device(),
                                    mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=reduce,
                                                                   buffer_dtype=torch.bfloat16))


def adapted(job, model):
    import peft
    return peft.get_peft_model(model, peft.LoraConfig(r=job["lora"], target_modules=job.get("targets", "all-linear")))


def lora(job):
    from torch.nn.parallel import DistributedDataParallel
    model = adapted(job, model_of(job, torch.bfloat16)).to("cuda")
    checkpoint(job, model)
    return DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])


def sync(job, model, last):
    """Gradients travel behind every micro batch, or with `sync: last` behind the last alone."""
    if job.get("sync") != "last":
        return
    if hasattr(model, "set_requires_gradient_sync"):
        model.set_requires_gradient_sync(last)
    else:
        model.require_backward_grad_sync = last


def pause():
    select.select([os.pipe()[0]], [], [], PAUSE)
    torch.cuda.reset_peak_memory_stats()


def loop(job, model):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=job.get("optimizer", "fused") == "fused")
    phases, losses = {}, []

    def phase(name):
        at = torch.cuda.memory_stats()["allocated_bytes.all.peak"]
        phases[name] = max(phases.get(name, 0), at)
        phases[name + "_left"] = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()

    for step in range(STEPS):
        if step == FIRST:
            pause()
            phases.clear()
        for micro in range(job.get("accumulate", 1)):
            sync(job, model, micro + 1 == job.get("accumulate", 1))
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=job["way"] == "ddp" and not job.get("pure")):
                loss = model(**batch_of(job)).loss
            phase("forward")
            loss.backward()
            phase("backward")
        if job.get("clip", True):
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        phase("update")
        losses.append(loss.item())
    return phases


# ---- programs that have a loop themselves ----

class Tokens(torch.utils.data.Dataset):
    def __init__(self, job):
        self.job = job

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        at = torch.randint(0, self.job["model"]["vocab_size"], (self.job["seq"],))
        return {"input_ids": at, "labels": at}


class Pause(transformers.TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == FIRST:
            pause()


def trainer(job):
    model = model_of(job, torch.bfloat16 if job.get("pure") or "lora" in job else torch.float32)
    if "lora" in job:
        model = adapted(job, model)
    more = {}
    if job["way"] == "trainer-fsdp":
        more = {"fsdp": "full_shard auto_wrap" if job.get("reshard", True) else "shard_grad_op auto_wrap",
                "fsdp_config": {"transformer_layer_cls_to_wrap": [type(layers_of(model)[0]).__name__], **job.get("fsdp_config", {})}}
    if job["way"] == "trainer-ds":
        more = {"deepspeed": {"zero_optimization": {"stage": job["zero"]}, "bf16": {"enabled": True},
                              "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto"}}
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, per_device_train_batch_size=job["mbs"], max_steps=STEPS, bf16=True, report_to=[], logging_steps=1, save_strategy="no",
            gradient_accumulation_steps=job.get("accumulate", 1), gradient_checkpointing=job.get("ac") == "full",
            optim=job.get("optim", "adamw_torch_fused"), disable_tqdm=True, **more)
        transformers.Trainer(model=model, args=arguments, train_dataset=Tokens(job), callbacks=[Pause()]).train()


def deepspeed(job):
    import deepspeed as ds
    config = {"train_micro_batch_size_per_gpu": job["mbs"], "gradient_accumulation_steps": job.get("accumulate", 1),
              "bf16": {"enabled": True}, "gradient_clipping": 1.0, "zero_allow_untested_optimizer": True,
              "zero_optimization": {"stage": job["zero"], **job.get("zero_config", {})}, **job.get("config", {})}
    model = model_of(job)
    checkpoint(job, model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    engine, *_ = ds.initialize(model=model, optimizer=optimizer, config=config)
    for _ in range(STEPS * job.get("accumulate", 1)):
        loss = engine(**batch_of(job)).loss
        engine.backward(loss)
        engine.step()


def figures(phases):
    stats = torch.cuda.memory_stats()
    peak = {k: stats[f"{k}_bytes.all.peak"] for k in ("allocated", "reserved", "active")}
    if phases:
        peak["allocated"] = max(v for k, v in phases.items() if not k.endswith("_left"))
        del peak["active"]
    free, total = torch.cuda.mem_get_info()
    return {**peak, "device": total - free, "phases": phases}


def main(end=True):
    with open(sys.argv[1], encoding="utf-8") as f:
        job = json.load(f)
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    transformers.logging.set_verbosity_error()
    way = job["way"]
    phases = {}
    if way.startswith("trainer"):
        trainer(job)
    elif way == "deepspeed":
        deepspeed(job)
    else:
        dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
        phases = loop(job, {"ddp": ddp, "fsdp2": fsdp2, "fsdp1": fsdp1, "lora": lora}[way](job))
    print("FIGURES", json.dumps(figures(phases)), flush=True)
    if end:
        os._exit(0)  # a watchdog of the process group has nobody to say goodbye to


if __name__ == "__main__":
    main()
