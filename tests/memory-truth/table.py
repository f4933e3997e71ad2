# SPDX-License-Identifier: Apache-2.0
"""The matrix of `make memory-truth`: jobs as the real program runs them (program.py), and the same jobs in the words of maquette.

A job's name says all of it. Half of the jobs, by a hash of the name, are held out: run.py shows their errors in sums alone, and no mechanism
was looked for in them.
"""
import hashlib
import json
import pathlib

TITLE = "models of transformers, in a loop, the Trainer, DeepSpeed"
KEPT = "memory_truth.json"
LIBRARIES = ("torch", "transformers", "accelerate", "peft", "deepspeed")
# Is nothing packed, is the mask all true? transformers' masking_utils.py asks the device, and takes a no for documents that it has to part.
VALUES = "after and_kernel_cuda 1 u8 1\nafter Compare 1 u8 1\n"  # of several sequences, of one

LLAMA = {"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4, "num_attention_heads": 16,
         "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 4096, "tie_word_embeddings": False}
MODELS = {
    "llama": LLAMA,
    "deep": {**LLAMA, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12,
             "num_key_value_heads": 12, "vocab_size": 8000},
    "wide": {**LLAMA, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 3, "num_key_value_heads": 8},
    "qwen3": {"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 4, "num_attention_heads": 16,
              "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 64000, "max_position_embeddings": 4096, "tie_word_embeddings": True},
    "eager": {**LLAMA, "attention": "eager"},
    "mistral": {"model_type": "mistral", "hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 5, "num_attention_heads": 16,
                "num_key_value_heads": 4, "vocab_size": 16000, "max_position_embeddings": 4096, "sliding_window": None,
                "tie_word_embeddings": False},
    "moe": {"model_type": "qwen3_moe", "hidden_size": 768, "intermediate_size": 2048, "moe_intermediate_size": 512, "num_hidden_layers": 4,
            "num_attention_heads": 12, "num_key_value_heads": 4, "head_dim": 64, "num_experts": 8, "num_experts_per_tok": 2,
            "vocab_size": 32000, "max_position_embeddings": 4096, "tie_word_embeddings": False, "decoder_sparse_step": 1},
    "qwen2": {**LLAMA, "model_type": "qwen2", "intermediate_size": 2560, "vocab_size": 48000, "num_key_value_heads": 2},
    "phi3": {**LLAMA, "model_type": "phi3", "num_key_value_heads": 8, "pad_token_id": 0},
    "olmo2": {**LLAMA, "model_type": "olmo2", "num_key_value_heads": 16, "intermediate_size": 3072, "vocab_size": 24000},
    "gpt2": {"model_type": "gpt2", "n_embd": 768, "n_layer": 6, "n_head": 12, "n_positions": 2048, "vocab_size": 50304},
    "mixtral": {"model_type": "mixtral", "hidden_size": 768, "intermediate_size": 1536, "num_hidden_layers": 3, "num_attention_heads": 12,
                "num_key_value_heads": 4, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
                "max_position_embeddings": 4096, "sliding_window": None, "tie_word_embeddings": False},
    "deepseek": {"model_type": "deepseek_v3", "hidden_size": 768, "intermediate_size": 2048, "moe_intermediate_size": 512,
                 "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "n_routed_experts": 8, "n_shared_experts": 1,
                 "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "q_lora_rank": 384, "kv_lora_rank": 256,
                 "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 64, "vocab_size": 32000, "max_position_embeddings": 4096,
                 "tie_word_embeddings": False},
}
WORLD = 16


def job(way, model, mbs, seq, **options):
    world = options.pop("world", WORLD)
    name = "-".join([way, model, f"{mbs}x{seq}"] + ([f"w{world}"] if world != WORLD else []) +
                    [k if v is True else f"no_{k}" if v is False else f"{k}_{v}" for k, v in options.items()])
    return {"name": name, "way": way, "model": MODELS[model], "mbs": mbs, "seq": seq, "world": world, **options}


def spread(way, *variants, **options):
    """A variant is (model, mbs, seq) or (model, mbs, seq, options)."""
    return [job(way, *v[:3], **options, **(v[3] if len(v) > 3 else {})) for v in variants]


SMALL = [("llama", 2, 1024), ("deep", 1, 2048), ("qwen3", 2, 512)]

JOBS = [
    *spread("ddp", *SMALL, ("llama", 4, 512), ("wide", 1, 1024), ("deep", 4, 1024), ("mistral", 2, 1024), ("moe", 2, 1024),
            ("eager", 2, 1024)),
    *spread("ddp", *SMALL, views=True),
    *spread("ddp", ("llama", 2, 1024), ("deep", 2, 1024), ac="full"),
    *spread("ddp", ("llama", 2, 1024), ("qwen3", 1, 1024), ("deep", 2, 1024), ("wide", 2, 1024), pure=True),
    *spread("ddp", ("llama", 2, 1024), ("deep", 1, 1024), accumulate=3),
    *spread("ddp", ("llama", 2, 1024), ("deep", 2, 512), optimizer="foreach"),
    *spread("ddp", ("llama", 2, 1024), ("qwen3", 1, 1024), accumulate=3, sync="last"),
    *spread("fsdp2", *SMALL, ("llama", 4, 1024), ("wide", 2, 1024), ("deep", 4, 1024), ("mistral", 2, 2048), ("moe", 2, 1024),
            ("eager", 2, 1024), ("llama", 2, 1024, {"world": 2}), ("deep", 2, 1024, {"world": 4}), ("llama", 1, 1024, {"world": 512})),
    *spread("fsdp2", *SMALL, ("wide", 1, 2048), reduce="fp32"),
    *spread("fsdp2", ("llama", 2, 1024), ("deep", 2, 1024), ("wide", 1, 1024), reshard=False),
    *spread("fsdp2", ("llama", 2, 1024), ("deep", 2, 1024), reduce="fp32", reshard=False),
    *spread("fsdp2", *SMALL, ("wide", 4, 1024), ("deep", 4, 2048), ac="full"),
    *spread("fsdp2", *SMALL, ("wide", 2, 1024), ac="op"),
    *spread("fsdp2", ("llama", 2, 1024), ("deep", 2, 1024), accumulate=3),
    *spread("fsdp2", ("llama", 2, 1024), ("deep", 2, 1024), ("wide", 1, 1024), accumulate=3, sync="last"),
    *spread("fsdp2", ("llama", 2, 1024), ("deep", 2, 1024), reduce="fp32", accumulate=3, sync="last"),
    *spread("fsdp2", ("llama", 2, 1024), ("qwen3", 2, 1024), optimizer="foreach"),
    *spread("fsdp2", ("llama", 2, 1024), ("deep", 2, 1024), pure=True),
    *spread("fsdp2", ("llama", 2, 1024), ("deep", 2, 1024), reduce="fp32", ac="full", accumulate=2),
    *spread("fsdp2", ("llama", 2, 1024), ("deep", 2, 1024), compile=True),
    *spread("fsdp1", *SMALL, ("llama", 4, 1024), ("wide", 2, 1024), ("deep", 4, 1024)),
    *spread("fsdp1", ("llama", 2, 1024), ("deep", 2, 1024), reshard=False),
    *spread("fsdp1", ("llama", 2, 1024), ("deep", 2, 1024), reduce="fp32"),
    *spread("fsdp1", ("llama", 2, 1024), ("deep", 2, 2048), ac="full"),
    *spread("fsdp1", ("llama", 2, 1024), ("deep", 2, 1024), accumulate=3),
    *spread("trainer-ddp", *SMALL, ("llama", 4, 512), ("wide", 1, 1024), ("deep", 4, 512), ("mistral", 2, 1024), ("moe", 2, 1024)),
    *spread("trainer-ddp", ("llama", 2, 1024), ("qwen3", 2, 1024), ac="full"),
    *spread("trainer-ddp", ("llama", 2, 1024), ("deep", 1, 1024), accumulate=3),
    *spread("trainer-ddp", ("llama", 2, 1024), ("deep", 2, 1024), optim="adamw_torch"),
    *spread("trainer-fsdp", *SMALL, ("llama", 4, 1024), ("wide", 2, 1024), ("mistral", 2, 1024)),
    *spread("trainer-fsdp", ("llama", 2, 1024), ("deep", 2, 1024), ac="full"),
    *spread("trainer-fsdp", ("llama", 2, 1024), ("deep", 2, 1024), accumulate=3),
    *spread("trainer-fsdp", ("llama", 2, 1024), ("deep", 2, 1024), reshard=False),
    *spread("lora", *SMALL, ("wide", 2, 1024), ("deep", 4, 1024), lora=16),
    *spread("lora", ("llama", 2, 1024), ("wide", 2, 1024), ac="full", lora=16),
    *spread("trainer-ddp", ("llama", 2, 1024), ("wide", 2, 1024), ("qwen3", 2, 512), lora=16),
    *spread("deepspeed", *SMALL, ("wide", 1, 1024), ("deep", 4, 1024), zero=1),
    *spread("deepspeed", *SMALL, ("wide", 1, 1024), ("deep", 4, 1024), zero=2),
    *spread("deepspeed", ("llama", 2, 1024), ("deep", 2, 1024), zero=3),
    *spread("deepspeed", ("llama", 2, 1024), ("deep", 2, 1024), zero=1, accumulate=3),
    *spread("deepspeed", ("llama", 2, 1024), ("deep", 2, 1024), zero=2, accumulate=3),
    *spread("deepspeed", ("llama", 2, 1024), ("deep", 2, 2048), zero=2, ac="full"),
    *spread("trainer-ds", ("llama", 2, 1024), ("deep", 2, 1024), zero=2),
]
# Other families, and what PYTORCH_CUDA_ALLOC_CONF changes: measured when the replay of the above was done, and nothing was changed for them.
LATER = [
    *spread("fsdp2", ("qwen2", 2, 1024), ("olmo2", 2, 1024), ("mixtral", 2, 1024), ("deepseek", 2, 1024), ("phi3", 2, 1024), ("gpt2", 2, 1024)),
    *spread("ddp", ("qwen2", 2, 1024), ("olmo2", 2, 1024), ("mixtral", 2, 1024), ("deepseek", 2, 1024), ("gpt2", 2, 1024)),
    *spread("trainer-ddp", ("qwen2", 4, 512), ("mixtral", 1, 2048), ("phi3", 2, 1024)),
    *spread("trainer-fsdp", ("qwen2", 2, 1024), ("mixtral", 2, 1024), ("moe", 4, 512)),
    *spread("fsdp1", ("moe", 2, 1024), ("qwen2", 2, 1024)),
    *spread("ddp", ("llama", 2, 1024), ("deep", 2, 1024), ("qwen3", 2, 512), alloc="expandable_segments:True"),
    *spread("fsdp2", ("llama", 2, 1024), ("deep", 4, 1024), ("wide", 2, 1024), ("moe", 2, 1024), alloc="expandable_segments:True"),
    *spread("fsdp2", ("llama", 2, 1024), ("mistral", 2, 2048), alloc="roundup_power2_divisions:8"),
    *spread("trainer-fsdp", ("llama", 2, 1024), ("qwen3", 2, 512), lora=16),
]
JOBS += LATER


def order(j):
    """Of measuring: what is interrupted has some of everything."""
    return hashlib.sha256(j["name"].encode()).digest()[1:]


def held_out(name):
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


# ---- as it is run ----

def missing():
    """Why no job can be run, beside libraries that are not there."""
    return None


def other_versions():
    return {}


def rank(_):
    return 1


def program(j, folder):
    """What Python is to run, what the device answers, and variables of the environment."""
    (folder / "job.json").write_text(json.dumps(j))
    variables = {"PYTORCH_CUDA_ALLOC_CONF": j["alloc"]} if "alloc" in j else {}
    return [pathlib.Path(__file__).with_name("program.py"), folder / "job.json"], VALUES, variables


# ---- in the words of maquette ----

def prediction(j):
    """Arguments, and what they read."""
    return ["train", "--json", "-"], json.dumps(document(j))


def framework_of(j):
    """Whose layers: all are of the transformers library. Autocast is the Trainer's and that of the loop around DistributedDataParallel."""
    base = "deepspeed" if "zero" in j else "huggingface"
    more = {} if base == "deepspeed" else {"autocast": j["way"].startswith("trainer") or j["way"] == "ddp"}
    foreach = j.get("optimizer") == "foreach" or j.get("optim") == "adamw_torch"
    more |= {"root_unit": True} if j["way"].startswith("fsdp") else {}
    if not j["way"].startswith("trainer") and base == "huggingface":
        more |= {"find_unused_parameters": False, "outputs_in_fp32": False}
    more |= {"meta_init": True} if j["way"] == "fsdp2" else {"flat_parameters": True} if j["way"] == "fsdp1" else {}
    return {"base": base, **more, **({"optimizer": "foreach"} if foreach else {}), **({"gradient_buckets": "views"} if j.get("views") else {})}


def sharding_of(j):
    way = j["way"]
    if way in ("deepspeed", "trainer-ds"):
        return ("no_shard", "optim", "optim_grads", "optim_grads_params")[j["zero"]]
    return "optim_grads_params" if "fsdp" in way else "no_shard"


def recompute_of(j):
    if j.get("ac") == "full":
        return {"recompute_granularity": "full"}
    return {"recompute_granularity": "selective", "selective_ac_option": "op"} if j.get("ac") == "op" else {}


def plan_of(j):
    plan = {"micro_batch_size": j["mbs"], "data_parallel_sharding_strategy": sharding_of(j), **recompute_of(j)}
    if not j.get("reshard", True):
        plan["reshard_after_forward"] = False
    if j.get("reduce") == "fp32":
        plan["grad_reduce_dtype"] = "fp32"
    if j["way"].startswith("fsdp"):
        plan["reduce_once_per_step"] = j.get("sync") == "last"
    if j.get("pure"):
        plan |= {"pure_low_precision": True, "main_grads_dtype": "bf16", "exp_avg_dtype": "bf16"}
    if j.get("compile"):
        plan["fused_kernels"] = True
    for word in j.get("alloc", "").split(",") if "alloc" in j else []:
        key, value = word.split(":")
        plan[key] = True if value == "True" else int(value)
    if "lora" in j:
        plan |= {"lora_rank": j["lora"], "lora_target_modules": "all-linear"}
    if j["model"].get("attention") == "eager":
        plan["attention_backend"] = "unfused"
    return plan


def document(j):
    world = j["world"]
    return {"model": {k: v for k, v in j["model"].items() if k != "attention"},
            "cluster": f"h100-sxm:{min(world, 8)} x {max(world // 8, 1)}",
            "framework": framework_of(j), "plan": plan_of(j),
            "workload": {"global_batch_size": j["mbs"] * world * j.get("accumulate", 1), "seq_length": j["seq"]}}
