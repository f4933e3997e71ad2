# SPDX-License-Identifier: Apache-2.0
"""A small GPT, trained for some steps in each of the ways that the big ones are.

    gpt.py [--attention flash|efficient|math|cudnn] [--optimizer fused|foreach|loop] [--profile]
"""
import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from say import say

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
            "math": SDPBackend.MATH, "cudnn": SDPBackend.CUDNN_ATTENTION}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, s, w))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary=512, width=256, heads=4, layers=2, sequence=128):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(sequence, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def optimizer_of(name, parameters):
    return torch.optim.AdamW(parameters, lr=1e-3, fused=name == "fused", foreach=name == "foreach")


def rounded(tensors):
    """What the caching allocator holds for them: blocks of 512 bytes."""
    return sum((t.numel() * t.element_size() + 511) // 512 * 512 for t in tensors)


def train(model, optimizer, steps, clip=True, batch=8, sequence=128, vocabulary=512, autocast=True):
    tokens = torch.randint(0, vocabulary, (batch, sequence + 1), generator=torch.Generator().manual_seed(1)).to("cuda")
    for _ in range(steps):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            loss = model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        say("loss", loss.item())
    return tokens


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--attention", choices=BACKENDS, default="flash")
    p.add_argument("--optimizer", choices=("fused", "foreach", "loop"), default="fused")
    p.add_argument("--profile", action="store_true")
    p.add_argument("--steps", type=int, default=3)
    a = p.parse_args()
    torch.manual_seed(0)
    model = GPT().to("cuda")
    optimizer = optimizer_of(a.optimizer, model.parameters())
    start = torch.cuda.memory_allocated()
    assert start == rounded(model.parameters()), (start, rounded(model.parameters()))
    with sdpa_kernel(BACKENDS[a.attention]):
        if a.profile:
            with torch.profiler.profile() as profile:
                train(model, optimizer, a.steps)
            assert len(profile.events()) > 0
        else:
            train(model, optimizer, a.steps)
    states = [t for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t) and t.is_cuda]
    say("allocated", torch.cuda.memory_allocated(), "of it states", rounded(states))
    say("peak", torch.cuda.max_memory_allocated(), "reserved", torch.cuda.memory_reserved())


if __name__ == "__main__":
    main()
