#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time that an API server takes for a request, a token of its prompt and a token that it streams, and a client beside it.

usage: front_time.py PID URL MODEL WORDS [--chat] [--detokenizer PID]

PID is a server's own process (`vllm serve`, which may run under `maquette run --world 1`: server.py starts one), MODEL its name there and WORDS a text
whose words prompts are drawn from: the model needs a tokenizer like those that people use, since making tokens is half of it. Its loop is the
process's first thread, the tokenizer among the others. Of SGLang (front_end.py in tools/sglang-truth) both are in the loop, and text is made of
tokens in a process of its own, the detokenizer. Needs aiohttp, which vllm brings. What src/serve/engine/host.c has is this, on the
processor that docs/validate-serve.md names.
"""
import argparse
import asyncio
import json
import pathlib
import random
import time

import aiohttp

FEW, MANY = 20, 1500  # words


def processor_s(pid):
    """(of the loop, of all other threads)."""
    loop = rest = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            ns = int((thread / "schedstat").read_text().split()[0])
        except OSError:
            continue
        if thread.name == str(pid):
            loop += ns
        else:
            rest += ns
    return loop / 1e9, rest / 1e9


class Client:
    def __init__(self, args):
        self.pid, self.beside, self.url, self.model, self.chat = args.pid, args.detokenizer, args.url, args.model, args.chat
        self.words = pathlib.Path(args.words).read_text(encoding="utf-8").split()

    def body(self, words, osl, seed):
        text = " ".join(random.Random(seed).choices(self.words, k=words))
        what = {"messages": [{"role": "user", "content": text}]} if self.chat else {"prompt": text}
        return {"model": self.model, "max_tokens": osl, "min_tokens": osl, "ignore_eos": True, "stream": True, "temperature": 0,
                "stream_options": {"include_usage": True}, **what}

    async def ask(self, session, words, osl, seed):
        """(pieces with text, tokens of the prompt)."""
        pieces = tokens = 0
        path = "/v1/chat/completions" if self.chat else "/v1/completions"
        async with session.post(self.url + path, json=self.body(words, osl, seed)) as answer:
            async for line in answer.content:
                if not line.startswith(b"data: {"):
                    continue
                said = json.loads(line[6:])
                pieces += bool(said.get("choices"))
                tokens = (said.get("usage") or {}).get("prompt_tokens", tokens)
        return pieces, tokens

    def spent_s(self):
        return (*processor_s(self.pid), sum(processor_s(self.beside)) if self.beside else 0)

    async def measure(self, count, at_once, words, osl):
        """Of a request: seconds of the loop, of the other threads, of the detokenizer, of this client; pieces; tokens of the prompt."""
        room = asyncio.Semaphore(at_once)
        limits = {"timeout": aiohttp.ClientTimeout(total=600), "connector": aiohttp.TCPConnector(limit=0)}
        async with aiohttp.ClientSession(**limits) as session:
            async def one(i):
                async with room:
                    return await self.ask(session, words, osl, f"{words} {osl} {at_once} {i}")

            await one(-1)
            before, own = self.spent_s(), time.process_time()
            answers = await asyncio.gather(*[one(i) for i in range(count)])
            own, after = time.process_time() - own, self.spent_s()
        return [(a - b) / count for a, b in zip(after, before)] + [own / count, sum(p for p, _ in answers) / count, sum(t for _, t in answers) / count]


async def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("pid", type=int)
    for name in ("url", "model", "words"):
        args.add_argument(name)
    args.add_argument("--chat", action="store_true")
    args.add_argument("--detokenizer", type=int, metavar="PID")
    client = Client(args.parse_args())
    few, many = await client.measure(200, 1, FEW, 1), await client.measure(200, 1, MANY, 1)
    beside = await client.measure(400, 16, FEW, 1)
    more = many[5] - few[5]
    print(f"a request of {few[5]:.0f} tokens alone: loop {1e3 * few[0]:.2f} ms, other threads {1e3 * few[1]:.2f}, client {1e3 * few[3]:.2f}; "
          f"of 16 at a time: loop {1e3 * beside[0]:.2f}")
    print(f"a token of a prompt: loop {1e6 * (many[0] - few[0]) / more:.2f} us, other threads {1e6 * (many[1] - few[1]) / more:.2f}")
    for at_once in (1, 2, 4, 8, 16, 32, 64):
        osl = 60 if at_once < 4 else 200
        loop, _, beside, _, pieces, _ = await client.measure(max(at_once, 8), at_once, FEW, osl)
        detokenizer = f", detokenizer {1e6 * at_once * beside / osl:.0f}" if client.beside else ""
        print(f"{at_once} streams: loop {1e6 * at_once * loop / osl:.0f} us an iteration{detokenizer}, {pieces / osl:.2f} pieces a token")


if __name__ == "__main__":
    asyncio.run(main())
