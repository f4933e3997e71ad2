#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks the transformers library how many parameters small models of random sizes have. Needs torch and transformers; no model is downloaded,
and none is in memory: all are made on the meta device.

usage: ask.py --count N [--seed S] [--family NAME ...]

Writes one line of JSON for each model: family, the keys that were set (all others are left out: the class's defaults), parameters, buffers
(numbers that balance the load of experts and that the library saves as buffers), and `whole`, the config.json that the library writes of it.
The same seed, count and library give the same lines.
"""
import argparse
import dataclasses
import json
import os
import random
import signal
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as NAMES  # noqa: E402

BALANCING = ("correction_bias", "balancing_bias", "expert_bias")


def even(r, low, high, step):
    return r.randrange(low, high + 1, step)


class Draw:
    """Values of keys, each drawn once: those that have to fit together know each other."""

    def __init__(self, r):
        self.r = r
        self.layers = r.randint(2, 6)
        self.heads = r.choice([2, 4, 6, 8])
        self.kv = r.choice([k for k in (1, 2, 3, 4, 6, 8) if self.heads % k == 0])
        self.width = r.choice([8, 12, 16, 24])
        self.hidden = self.heads * self.width
        self.experts = r.choice([4, 6, 8])
        self.topk = r.randint(1, 3)
        self.gh = r.choice([2, 4])  # heads of a scan are a multiple of its groups
        self.period = r.randint(1, 3)

    def value(self, key):
        r = self.r
        first = {
            "hidden_size": self.hidden, "n_embd": self.hidden, "d_model": self.hidden, "emb_dim": self.hidden,
            "num_hidden_layers": self.layers, "n_layer": self.layers, "n_layers": self.layers, "num_layers": self.layers,
            "num_attention_heads": self.heads, "n_head": self.heads, "n_heads": self.heads, "num_heads": self.heads,
            "attention_heads": self.heads, "num_key_value_heads": self.kv, "num_kv_heads": self.kv,
            "num_experts": self.experts, "num_local_experts": self.experts, "n_routed_experts": self.experts,
            "moe_num_experts": self.experts, "num_experts_per_tok": self.topk, "moe_topk": self.topk,
            "moe_k": self.topk, "n_group": 1, "topk_group": 1, "num_expert_group": 1,
            "embedding_size": self.hidden if r.random() < 0.5 else 2 * self.width,
        }
        if key in first:
            return first[key]
        ranges = {
            "vocab_size": (64, 400, 1), "intermediate_size": (24, 160, 2), "ffn_dim": (24, 160, 2), "n_inner": (24, 160, 2),
            "dff": (24, 160, 2), "head_dim": (8, 32, 4), "v_head_dim": (8, 32, 4), "kv_lora_rank": (8, 40, 4),
            "q_lora_rank": (8, 40, 4), "qk_nope_head_dim": (8, 32, 4), "qk_rope_head_dim": (4, 16, 4),
            "moe_intermediate_size": (8, 48, 2), "shared_expert_intermediate_size": (8, 48, 2),
            "shared_intermediate_size": (8, 48, 2), "moe_shared_expert_intermediate_size": (8, 48, 2),
            "dense_intermediate_size": (24, 160, 2), "intermediate_size_mlp": (24, 160, 2),
            "prefix_dense_intermediate_size": (24, 160, 2), "n_shared_experts": (1, 2, 1), "num_shared_experts": (1, 2, 1),
            "moe_num_shared_experts": (1, 2, 1), "first_k_dense_replace": (0, 2, 1), "num_dense_layers": (0, 2, 1),
            "decoder_sparse_step": (1, 3, 1), "max_position_embeddings": (32, 128, 8), "n_positions": (32, 128, 8),
            "type_vocab_size": (1, 3, 1), "index_n_heads": (1, 4, 1), "index_head_dim": (16, 32, 8), "index_topk": (4, 16, 4),
            "gated_norm_rank": (2, 8, 2), "state_size": (4, 16, 4), "mamba_d_state": (4, 16, 4), "ssm_state_size": (4, 16, 4),
            "conv_kernel": (2, 4, 1), "mamba_d_conv": (2, 4, 1), "linear_conv_kernel_dim": (2, 4, 1), "conv_L_cache": (2, 5, 1),
            "short_conv_kernel_size": (2, 4, 1), "time_step_rank": (2, 8, 1), "mamba_dt_rank": (2, 8, 1),
            "linear_head_dim": (8, 16, 4), "linear_num_heads": (2, 6, 2), "linear_key_head_dim": (8, 16, 4),
            "linear_value_head_dim": (8, 16, 4), "hidden_size_per_layer_input": (4, 16, 4),
            "vocab_size_per_layer_input": (64, 200, 1), "laurel_rank": (4, 12, 4), "altup_num_inputs": (2, 4, 1),
            "word_embed_proj_dim": (8, 64, 8), "attn_layer_period": (2, 3, 1), "expert_layer_period": (1, 3, 1),
            "full_attention_interval": (1, 4, 1), "moe_layer_interval": (1, 3, 1), "interleave_moe_layer_step": (1, 3, 1),
            "layer_group_size": (2, 4, 1), "adapter_reduction_factor": (2, 3, 1), "intermediate_multiple_size": (2, 5, 1),
            "pronunciation_vocab_size": (32, 64, 1), "shape_vocab_size": (32, 64, 1), "pronunciation_embed_dim": (8, 24, 4),
            "shape_embed_dim": (8, 24, 4), "adapter_rank": (2, 8, 2), "input_embedding_size": (8, 32, 4),
            "output_embedding_size": (8, 64, 4), "hc_mult": (2, 4, 1), "sliding_window": (8, 32, 8), "num_ln_in_parallel_attn": (1, 2, 1),
            "index_skip_topk_offset": (1, 3, 1), "index_topk_freq": (1, 3, 1), "num_logits_to_keep": (1, 1, 1),
            "patch_size": (2, 5, 1), "swa_num_attention_heads": (2, 4, 2), "expand": (1, 3, 1), "mamba_expand": (1, 3, 1),
            "rotary_dim": (4, 8, 4), "global_head_dim": (8, 32, 8), "num_mem_blocks": (1, 2, 1), "gating_dim": (4, 8, 4),
            "expert_ffn_hidden_size": (8, 48, 2), "ffn_hidden_size": (24, 160, 2), "zero_expert_num": (1, 4, 1),
            "o_lora_rank": (8, 16, 4), "shared_experts_intermediate_size": (8, 48, 2), "projector_size": (8, 8, 1),
            "num_codebooks": (1, 2, 1), "encoder_ffn_dim": (16, 32, 8), "decoder_ffn_dim": (24, 160, 2),
        }
        if key in ranges:
            return even(r, *ranges[key])
        scans = {
            "mamba_n_heads": 2 * self.gh, "mamba_num_heads": 2 * self.gh, "n_groups": self.gh, "mamba_n_groups": self.gh,
            "mamba_ngroups": self.gh, "n_mamba_heads": self.gh, "linear_num_value_heads": 2 * self.gh,
            "linear_num_key_heads": self.gh, "mamba_d_head": r.choice([4, 8]), "mamba_head_dim": r.choice([4, 8]),
        }
        return scans.get(key)


# Keys without which a model of any size would have the sizes of the class.
SIZES = ("hidden_size n_embd d_model emb_dim num_hidden_layers n_layer n_layers num_layers num_attention_heads n_head n_heads num_heads "
         "attention_heads vocab_size intermediate_size ffn_dim dff n_positions max_position_embeddings").split()
FLAGS = ("tie_word_embeddings attention_bias mlp_bias bias use_bias qkv_bias use_qkv_bias use_qk_norm qk_layernorm qk_norm add_qkv_bias "
         "conv_bias use_conv_bias mamba_conv_bias mamba_proj_bias parallel_attn new_decoder_architecture multi_query alibi use_parallel_residual "
         "use_post_norm use_sandwich_norm use_attention_gate attention_k_eq_v use_double_wide_mlp norm_bias decoder_bias classifier_bias "
         "lm_head_bias use_expert_bias use_shared_attention_adapter do_layer_norm_before mamba_rms_norm projectors_bias "
         "moe_router_enable_expert_bias concat_input enable_pronunciation enable_shape residual_fp32 use_mem_rope no_bias").split()


def small(name, cls, r):
    """Keys of a random small model of a family."""
    draw = Draw(r)
    keys = {}
    fields = {f.name for f in dataclasses.fields(cls)}
    for key in sorted(fields):
        value = draw.value(key)
        if value is None:
            continue
        if key in SIZES or r.random() < 0.75:
            keys[key] = value
    for key in FLAGS:
        if key in fields and r.random() < 0.5:
            keys[key] = r.random() < 0.5
    if "qk_rope_head_dim" in fields and "kv_lora_rank" in fields:
        keys.pop("head_dim", None)
        keys.pop("num_key_value_heads", None)  # as many as heads
        if name == "deepseek_v2" or "num_experts_per_tok" in fields:
            keys["num_experts_per_tok"] = draw.topk
    if "layer_types" in fields and r.random() < 0.3:
        words = {"lfm2": ["conv", "full_attention"], "lfm2_moe": ["conv", "full_attention"], "lfm3": ["conv", "full_attention", "sliding_attention"]}
        linear = any(k.startswith(("linear_", "mamba")) for k in fields) or name in ("minimax", "bailing_hybrid")
        choice = words.get(name, ["linear_attention", "full_attention"] if linear else ["sliding_attention", "full_attention"])
        if not {"index_topk", "index_topk_blocks"} & fields:
            keys["layer_types"] = [r.choice(choice) for _ in range(draw.layers)]
    if "mlp_layer_types" in fields and r.random() < 0.4:
        keys["mlp_layer_types"] = [r.choice(["dense", "sparse"]) for _ in range(draw.layers)]
    if "mlp_only_layers" in fields and r.random() < 0.4:
        keys["mlp_only_layers"] = sorted(r.sample(range(draw.layers), r.randint(0, draw.layers)))
    if "layers_block_type" in fields:
        words = ["linear_attention", "hybrid"] if name.startswith("zamba") else ["linear_attention", "full_attention", "mlp", "moe"]
        keys["layers_block_type"] = [r.choice(words) for _ in range(draw.layers)]
        if name.startswith("zamba"):
            keys["layers_block_type"][r.randrange(draw.layers)] = "hybrid"
        if name == "nemotron_h":
            keys.pop("num_hidden_layers", None)
    if name == "dots3_note_text":
        keys["num_key_value_heads"] = draw.heads
    if name.startswith("gpt_neo") and "attention_types" in fields:
        keys["num_layers"] = 2 * r.randint(1, 3)
        keys["attention_types"] = [[["global", "local"], keys["num_layers"] // 2]]
    if name.startswith("gemma3n"):
        keys["num_hidden_layers"] = r.randint(6, 8)
        keys["num_kv_shared_layers"] = r.randint(0, 1)
        keys["intermediate_size"] = 2 * r.randint(12, 60)
        keys.pop("layer_types", None)
    if name.startswith("gemma4") and "num_kv_shared_layers" in fields:
        keys["num_hidden_layers"] = r.randint(7, 9)
        keys["num_kv_shared_layers"] = r.randint(0, 1)
        keys.pop("layer_types", None)
    for group in ("n_group", "topk_group", "num_expert_group"):
        if group in fields:
            keys[group] = 1
    return keys


def stop(*_):
    raise TimeoutError


def ask(name, keys):
    given = json.loads(json.dumps(keys))
    if "pad_token_id" in {f.name for f in dataclasses.fields(CONFIG_MAPPING[name])}:
        given["pad_token_id"] = 0  # inside the small vocabulary
    config = CONFIG_MAPPING[name](**given)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    saved = set(model.state_dict(keep_vars=True))
    balance = sum(b.numel() for n, b in model.named_buffers() if n in saved and n.endswith(BALANCING))
    whole = config.to_dict()
    whole.update(model_type=name, architectures=[type(model).__name__])
    return sum(p.numel() for p in model.parameters()), balance, whole


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--count", type=int, default=8)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--family", nargs="*")
    a = args.parse_args()
    signal.signal(signal.SIGALRM, stop)
    print(json.dumps({"transformers": transformers.__version__, "seed": a.seed, "count": a.count}), flush=True)
    for name in a.family or sorted(set(NAMES)):
        cls = CONFIG_MAPPING[name]
        r = random.Random(f"{a.seed} {name}")
        done, why = 0, ""
        for _ in range(6 * a.count):
            keys = small(name, cls, r)
            signal.alarm(30)
            try:
                count, balance, whole = ask(name, keys)
            except Exception as fault:  # sizes that the class refuses
                why = f"{type(fault).__name__}: {' '.join(str(fault).split())[:160]}"
                continue
            finally:
                signal.alarm(0)
            if count > 60_000_000:  # a tower of default size beside it
                why = "too large"
                continue
            print(json.dumps({"family": name, "keys": keys, "parameters": count, "buffers": balance, "whole": whole}, default=str), flush=True)
            done += 1
            if done == a.count:
                break
        if done == 0:
            print(json.dumps({"family": name, "why": why}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
