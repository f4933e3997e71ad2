# SPDX-License-Identifier: Apache-2.0
"""A Llama in plain PyTorch, as small as it can be and with the shapes of the real one: what tools/on-gpu measures and maquette predicts.

Weights, gradients and AdamW's moments are in bfloat16 (maquette's `pure_low_precision`): then the bytes of a parameter are eight, of which
there is nothing to guess. Attention is FlashAttention-2 by scaled_dot_product_attention with grouped heads, the loss is over logits in FP32.
"""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

HEAD = 128


class Norm(nn.Module):
    """In four kernels, as model code writes it without a fused one."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


def rotate(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Block(nn.Module):
    def __init__(self, width, heads, kv_heads, ffn):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * HEAD, bias=False)
        self.out = nn.Linear(heads * HEAD, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, width, bias=False)

    def forward(self, x, cos, sin):
        batch, sequence, _ = x.shape
        y = self.qkv(self.norm1(x)).view(batch, sequence, self.heads + 2 * self.kv_heads, HEAD)
        q, k, v = (part.transpose(1, 2) for part in y.split((self.heads, self.kv_heads, self.kv_heads), dim=2))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION if x.is_cuda else SDPBackend.MATH):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, sequence, -1))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, layers, width=4096, heads=32, kv_heads=8, ffn=14336, vocabulary=128256, sequence=4096):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, kv_heads, ffn) for _ in range(layers))
        self.norm = Norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        place, wide = torch.arange(sequence, dtype=torch.float32), torch.arange(0, HEAD, 2, dtype=torch.float32)
        angle = torch.outer(place, 500000.0 ** (-wide / HEAD)).repeat(1, 2)
        self.register_buffer("cos", angle.cos().to(self.norm.weight.dtype), persistent=False)
        self.register_buffer("sin", angle.sin().to(self.norm.weight.dtype), persistent=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))


def loss_of(model, tokens):
    """tokens: one more than the sequence is long."""
    logits = model(tokens[:, :-1]).float()
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def make(device, layers, **sizes):
    """In 16 bits and on the device from the start, so that the allocator keeps nothing of a wider copy."""
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            return Llama(layers, **sizes)
    finally:
        torch.set_default_dtype(torch.float32)
