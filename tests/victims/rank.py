# SPDX-License-Identifier: Apache-2.0
"""A rank of a training job that never was: it speaks shim/record.h and shim/link.h itself, without a device, as the smallest program that
`maquette run` and `maquette capture` can look after.

usage: rank.py [--tp N] [--pp N] [--steps N] [--odd RANK] [--fail RANK] [--clock RANK] [--sleep S]

Ranks are laid out as Megatron-LM does (tp, dp, pp). Everybody says in an exchange which stage it is; the id of a tensor group comes over
the store, from its first rank; a step is a product, an all-reduce over tp, messages along pp and an all-reduce over dp. --odd lets one rank
launch something else, --clock tell the others what time it is.
"""
import _socket as socket  # without selectors and enum, which take longer to import than all this runs
import os
import struct
import sys
import time

MASK = (1 << 64) - 1
NONE = 0xFFFFFFFF
(END, DEF_OP, DEF_COMM, DEF_TEXT, HOST, LAUNCH, COPY, SET, COLL, SEND, RECV, EVENT_RECORD, STREAM_WAIT, EVENT_SYNC, STREAM_SYNC,
 DEVICE_SYNC, HOST_CALL, ALLOC, FREE, READ, BOOT, MARK) = range(22)
KERNEL, GEMM, BF16, ALL_REDUCE, SUM = 0, 1, 9, 0, 0


def mix(a, b):
    z = (a + 0x9E3779B97F4A7C15 * (b + 1)) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def hashed(data, seed):
    for byte in data:
        seed = ((seed ^ byte) * 0x100000001B3) & MASK
    return mix(seed, len(data))


class Card(dict):
    def __init__(self):
        with open(os.environ["MAQUETTE_RUN"], encoding="utf-8") as file:
            super().__init__(line.rstrip("\n").split(" ", 1) for line in file)
        self.world, self.rank = int(self["world"]), int(self["rank"])


class Trace:
    """Records, and the questions and exchanges that make them."""

    def __init__(self, card):
        self.card = card
        self.file = open(card["trace"], "wb")
        self.file.write(struct.pack("<8sIIIIIIQ24x", b"maqrank\n", 1, 64, card.world, card.rank, int(card["per_node"]), 0, 7))
        self.ops, self.comms, self.channels = {}, [], {}
        self.line = socket.socket(socket.AF_UNIX)
        self.line.connect(card["ask"])
        self.peers = self.read_peers(card.get("peers"))

    @staticmethod
    def read_peers(path):
        said = {}
        if path:
            data = open(path, "rb").read()
            magic, n = struct.unpack_from("<8sQ", data)
            assert magic == b"maqpeers"
            for i in range(n):
                channel, seq, rank, at, size = struct.unpack_from("<QIIQQ", data, 16 + 32 * i)
                said[channel, seq, rank] = data[at:at + size]
        return said

    def put(self, kind, ident=0, arg=0, size=0, ns=0, payload=None, stream=0, host=1000, flags=0):
        if payload is not None:
            size = len(payload)
        self.file.write(struct.pack("<BBHIIIQQ", kind, flags, stream, ident, host, arg, size, ns))
        if payload is not None:
            self.file.write(payload + bytes(-len(payload) % 32))

    def ask(self, question):
        self.line.sendall(question)
        answer = self.line.recv(8, socket.MSG_WAITALL)
        assert len(answer) == 8, "nobody answers"
        return struct.unpack("<Q", answer)[0]

    def launch(self, name, kind, dims, size=0, grid=1):
        op = struct.pack("<HBBI3I3III6qQ", kind, BF16, BF16, 0, grid, 1, 1, 256, 1, 1, 0, len(name), *dims, *[0] * (6 - len(dims)), size)
        key = op + name.encode()
        if key not in self.ops:
            self.ops[key] = len(self.ops), self.ask(struct.pack("<IIQ", 1, 0, size) + key)
            self.put(DEF_OP, self.ops[key][0], payload=key, host=0)
        self.put(LAUNCH, self.ops[key][0], size=size, ns=self.ops[key][1])

    def communicator(self, lineage, n, me, members=()):
        comm = struct.pack("<Q6I", lineage, n, me, NONE, 0, 0, len(members)) + struct.pack(f"<{len(members)}I", *members)
        self.comms.append(comm)
        self.put(DEF_COMM, len(self.comms) - 1, payload=comm, host=0)
        return len(self.comms) - 1

    def collective(self, comm, size):
        said = self.comms[comm]
        ns = self.ask(struct.pack("<IIQ", 2, ALL_REDUCE, size) + said[:32].ljust(96, b"\0") + said[32:])
        self.put(COLL, comm << 16 | SUM << 12 | BF16 << 6 | ALL_REDUCE, NONE, size, ns)

    def message(self, kind, comm, peer, size):
        self.put(kind, comm << 16 | BF16 << 6 | 8, peer, size, 2000 + size // 1000)

    def exchange(self, channel, n, me, mine):
        """Everybody's contribution; one's own where nobody knows."""
        number, seq = self.channels.setdefault(channel, [len(self.channels), 0])
        self.channels[channel][1] += 1
        self.put(BOOT, number, me, ns=channel, payload=mine, host=0)
        return [mine if i == me else self.peers.get((channel, seq, i), mine) for i in range(n)]


class Store:
    """A client of torch.distributed's store, as of torch 2.2."""

    def __init__(self):
        self.line = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.line.connect((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
        self.line.sendall(b"\0" + struct.pack("<I", 0x3C85F7CE))

    @staticmethod
    def text(data):
        return struct.pack("<Q", len(data)) + data

    def take(self, n):
        data = self.line.recv(n, socket.MSG_WAITALL)
        assert len(data) == n
        return data

    def set(self, key, value):
        self.line.sendall(b"\1" + self.text(key.encode()) + self.text(value))

    def get(self, key):
        self.line.sendall(b"\6" + struct.pack("<Q", 1) + self.text(key.encode()))
        assert self.take(1) == b"\0"
        self.line.sendall(b"\3" + self.text(key.encode()))
        return self.take(struct.unpack("<Q", self.take(8))[0])

    def add(self, key, by):
        self.line.sendall(b"\4" + self.text(key.encode()) + struct.pack("<q", by))
        return struct.unpack("<q", self.take(8))[0]


class options:
    """--name VALUE of the type of its default, --name where that is False; what is no option is `kind`. (A test starts hundreds of these
    programs: argparse takes longer to import than they run.)"""

    def __init__(self, **defaults):
        self.__dict__.update(defaults, kind=None)
        words = iter(sys.argv[1:])
        for word in words:
            name = word[2:]
            if not word.startswith("--"):
                self.kind = word
            elif defaults[name] is False:
                setattr(self, name, True)
            else:
                setattr(self, name, type(defaults[name])(next(words)))


def main():
    o = options(tp=1, pp=1, steps=2, odd=-1, fail=-1, clock=-1, sleep=0.0)
    card = Card()
    trace, store, world, rank = Trace(card), Store(), card.world, card.rank
    time.sleep(o.sleep)
    store.add("init/", 1)
    while store.add("init/", 0) < world:
        time.sleep(0.01)
    dp = world // o.tp // o.pp
    t, d, p = rank % o.tp, rank // o.tp % dp, rank // o.tp // dp
    everybody = trace.communicator(hashed(b"world", 0), world, rank, range(world))
    stages = trace.exchange(1, world, rank, struct.pack("<I", p))
    if o.clock >= 0:
        trace.exchange(4, world, rank, struct.pack("<Q", time.time_ns() if rank == o.clock else 0))
    known = sum(struct.unpack("<I", s)[0] != p for s in stages)

    group = f"tp/{p}/{d}"
    if t == 0:
        store.set(group, f"id of {rank}".encode())
    tensor = trace.communicator(hashed(store.get(group), 1), o.tp, t, [rank - t + i for i in range(o.tp)])
    data = trace.communicator(hashed(f"dp/{p}/{t}".encode(), 2), dp, d, [(p * dp + i) * o.tp + t for i in range(dp)])
    pipe = trace.communicator(hashed(f"pp/{d}/{t}".encode(), 3), o.pp, p, [(i * dp + d) * o.tp + t for i in range(o.pp)])

    if rank == o.fail:
        print("this rank does not like it here")
        sys.exit(7)
    trace.put(ALLOC, 0, 0, 1 << 30)
    trace.put(ALLOC, 1, 0, (1 << 20) * (p + 1))
    for _ in range(o.steps):
        if p > 0:
            trace.message(RECV, pipe, p - 1, 1 << 20)
        trace.launch("gemm", GEMM, (4096 // o.tp, 4096, 1024, 1))
        if rank == o.odd:
            trace.launch("odd_kernel", KERNEL, (), 1 << 20)
        trace.collective(tensor, 1 << 22)
        if p < o.pp - 1:
            trace.message(SEND, pipe, p + 1, 1 << 20)
        trace.collective(data, 1 << 24)
        trace.put(STREAM_SYNC)
    trace.put(FREE, 1, 0)
    if known:  # a job whose stages know of each other says so at its end
        trace.collective(everybody, 4)
    trace.put(END, 0, 0, (1 << 30) + (1 << 20) * (p + 1))
    trace.file.close()


if __name__ == "__main__":
    main()
