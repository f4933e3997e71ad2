#!/usr/bin/env python3
"""A small parallelizer for `maquette plan --parallelizer examples/parallelizer/roofline.py`.

It runs a slice as one stage: DP replicas of TP groups inside a node, with or without recomputing whole layers, ZeRO-1 or
none. Costs are a roofline that it works out itself from what the requests say: matrix FLOP at half of the peak, the rest by
bytes through memory, ring all-reduces inside a replica and over the replicas. Requests and answers are JSON, one object per
line (docs/parallelizer.md).
"""
import json
import sys

EFFICIENCY = 0.5  # of peaks: arithmetic, memory, links
CONTEXT_BYTES = 1.5 * 2**30  # CUDA context, workspace, communicators


class Roofline:
    def open(self, request):
        if request["version"] != 1:
            raise ValueError("this parallelizer speaks version 1")
        self.model = request["model"]
        return {"version": 1, "name": "roofline", "front": True, "concatenates": False}

    def slice_model(self, _request):
        """An atom for each layer; layers of one kind cannot be told apart."""
        return {"atoms": [{"layers": 1, "signature": layer["kind"]} for layer in self.model["layers"]]}

    def profile(self, request):
        """No plan beats one device for each replica without communication, and none keeps less than one with everything recomputed."""
        layers, island = self.layers(request), request["island"]
        rate = 1 / min(sum(self.layer_s(layer, island, 1, redone) for layer in layers) for redone in (False, True))
        devices = island["nodes"] * island["devices_per_node"]
        states = sum(layer["parameters"] for layer in layers) * self.model["state_bytes"]
        flight = sum(layer["recomputed_bytes"] for layer in layers)
        return {"samples_per_s": devices * rate, "min_bytes": CONTEXT_BYTES + states + flight}

    def parallelize(self, request):
        """Every stage that fits and that no other beats: good for all positions."""
        island, at = request["island"], request["position"]
        stages, devices = [], island["nodes"] * island["devices_per_node"]
        held = min(at["stages_behind"] + 1, at["waves"])
        for tp in (t for t in range(1, island["devices_per_node"] + 1) if island["devices_per_node"] % t == 0):
            for dp in range(1, devices // tp + 1):
                micro_batch = at["wave_samples"] // dp
                if at["wave_samples"] % dp != 0 or at["micro_batch_size"] not in (0, micro_batch):
                    continue
                for redone in (False, True):
                    for zero in ("no_shard", "optim") if dp > 1 else ("no_shard",):
                        stage = self.stage(request, tp, dp, micro_batch, redone, zero)
                        if stage["static_bytes"] + held * stage["flight_bytes"] <= island["memory_bytes"]:
                            stages.append(stage)
        front = [s for s in stages if not any(beats(other, s) for other in stages)]
        return {"plans": [{"text": words(s), "stages": [s]} for s in front]}

    # ---- costs ----

    def layers(self, request):
        at = request["slice"]
        return self.model["layers"][at["first_layer"]:at["first_layer"] + at["layers"]]

    def layer_s(self, layer, island, tp, redone):
        """Forward and backward of a sample on one of `tp` devices; recomputation is another forward pass."""
        passes = 4 if redone else 3
        compute = passes * layer["forward_flop"] / (tp * EFFICIENCY * island["flop_per_s"])
        memory = passes * layer["kept_bytes"] / (tp * EFFICIENCY * island["memory_bytes_per_s"])
        reduce = ring(tp, layer["boundary_bytes"], island["scale_up_bytes_per_s"])
        return compute + memory + 2 * (passes - 1) * reduce  # two in each pass; both backward passes share theirs

    def stage(self, request, tp, dp, micro_batch, redone, zero):
        layers, island = self.layers(request), request["island"]
        parameters = sum(layer["parameters"] for layer in layers) / tp
        kept = sum(layer["recomputed_bytes" if redone else "kept_bytes"] for layer in layers)
        working = max(layer["kept_bytes"] for layer in layers) if redone else 0  # of the layer that is computed again
        gradient, state = self.model["gradient_bytes"], self.model["state_bytes"]
        optimizer = (state - 2 * gradient) / (dp if zero == "optim" else 1)  # weights count as much as gradients
        inside = tp * dp <= island["devices_per_node"]
        link = island["scale_up_bytes_per_s"] if inside else island["network_bytes_per_s"]
        return {"atoms": len(layers),
                "devices": tp * dp,
                "replicas": dp,
                "time_s": micro_batch * sum(self.layer_s(layer, island, tp, redone) for layer in layers),
                "static_bytes": CONTEXT_BYTES + parameters * (2 * gradient + optimizer) + micro_batch * working / tp,
                "flight_bytes": micro_batch * kept / tp,
                "sync_s": ring(dp, parameters * gradient, link) + parameters * 4 * gradient / island["memory_bytes_per_s"],
                "boundary_bytes": micro_batch * layers[-1]["boundary_bytes"] / tp,
                "tensor_parallel_size": tp,
                "micro_batch_size": micro_batch,
                "recompute": "full" if redone else "none",
                "zero": zero}


def ring(devices, size, link):
    """An all-reduce of `size` bytes over a ring."""
    return 2 * (devices - 1) / devices * size / (EFFICIENCY * link) if devices > 1 else 0


COSTS = ("devices", "time_s", "static_bytes", "flight_bytes", "sync_s")


def beats(a, b):
    """No worse in anything that the pipeline feels, and better in something."""
    same = a["boundary_bytes"] == b["boundary_bytes"] and a["replicas"] == b["replicas"]
    return same and all(a[c] <= b[c] for c in COSTS) and any(a[c] < b[c] for c in COSTS)


def words(s):
    return f"tp{s['tensor_parallel_size']} dp{s['replicas']} mbs{s['micro_batch_size']} recompute={s['recompute']} zero={s['zero']}"


def main():
    parallelizer = Roofline()
    operations = {"open": parallelizer.open, "slice_model": parallelizer.slice_model, "profile": parallelizer.profile,
                  "parallelize": parallelizer.parallelize}
    for line in sys.stdin:  # ends when maquette closes it
        request = json.loads(line)
        try:
            answer = operations[request["op"]](request)
        except (KeyError, ValueError) as fault:
            answer = {"error": f"{type(fault).__name__}: {fault}"}
        print(json.dumps({"id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
