#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `maquette serve plan` writes for Kubernetes is the deployment that it found.

The command line that llm-d's chart makes of its values (llm-d-modelservice v0.4.12, templates/_helpers.tpl) is put together here, given to
`maquette serve`, which reads vLLM's options, and what that understands is held against the plan's JSON. So is each component of Dynamo's manifest.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import yaml

from cli_case import PROGRAM, Tap

SHORT = "--num-requests 200 --no-front --space max-num-seqs=default --space max-num-batched-tokens=default".split()
FLEETS = {
    "replicas": ["--model", "llama-3.1-70b", "--cluster", "h100-sxm:8", "--isl", "500", "--osl", "20", "--space", "tp=2", "--space", "pp=2", "--no-pools",
                 "--weights", "fp8", "--kv-cache-dtype", "fp8", "--max-model-len", "8192", "--rate", "20"],
    "pools": ["--model", "llama-3.1-8b", "--cluster", "h100-sxm:4", "--isl", "4000", "--osl", "100", "--space", "tp=1,2", "--space", "pp=1", "--slo",
              "ttft_p95<2s, tpot_p95<9ms"],
    "nodes": ["--model", "deepseek-v3", "--cluster", "h200-sxm:8 x 2", "--isl", "500", "--osl", "20", "--space", "tp=1", "--space", "dp=16", "--space",
              "ep=16", "--space", "pp=1", "--no-pools", "--rate", "2"],
}
NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


def served(cluster, command):
    """What maquette understands of a command line of vLLM."""
    got = run("serve", "--cluster", cluster, "--rate", "1", "--num-requests", "2", "--isl", "10", "--osl", "2", "--json", "--", *command)
    d = json.loads(got.stdout)["deployment"]
    return {"model": d["model"], "tp": d["tensor_parallel_size"], "pp": d["pipeline_parallel_size"], "dp": d["data_parallel_size"],
            "ep": d["expert_parallel_size"], "weights": d["weights"], "kv": d["kv_cache_dtype"]}


def wanted(part, model):
    return {"model": model, "tp": part["tp"], "pp": part["pp"], "dp": part["dp"], "ep": part["ep"], "weights": part["weights"],
            "kv": "fp8" if part["kv_cache_dtype"] == "fp8" else "bf16"}


def connector(args):
    return json.loads(args[args.index("--kv-transfer-config") + 1]) if "--kv-transfer-config" in args else None


def without_connector(args):
    at = args.index("--kv-transfer-config") if "--kv-transfer-config" in args else len(args)
    return args[:at] + args[at + 2:]


def rendered(values, pool, rank):
    """The words of a pod's container as the chart makes them; of a shell's those that it would make of them in the pod of that rank."""
    container, cut = values[pool]["containers"][0], values[pool]["parallelism"]
    name = values["modelArtifacts"]["uri"].split("://")[1]
    if container["modelCommand"] == "custom":
        script = container["args"][0].replace("exec vllm", "printf '%s\\n' vllm", 1)
        shell = subprocess.run([*container["command"], script], env={"LWS_WORKER_INDEX": str(rank), "LWS_LEADER_ADDRESS": "leader"},
                               capture_output=True, text=True, check=True)
        return shell.stdout.splitlines()
    proxied = pool == "decode" and values["routing"]["proxy"]["enabled"]
    port = values["routing"]["proxy"]["targetPort"] if proxied else values["routing"]["servicePort"]
    words = ["vllm", "serve", name, "--port", str(port)]
    for flag, degree in (("--tensor-parallel-size", "tensor"), ("--data-parallel-size", "data"), ("--data-parallel-size-local", "dataLocal")):
        words += [flag, str(cut[degree])] if cut[degree] > 1 else []
    return [*words, "--served-model-name", values["modelArtifacts"]["name"], *container["args"]]


def helm_faults(values, plan, cluster, per_node):
    parts = {("prefill" if p.get("role") == "prefill" else "decode"): p for p in plan["best"]["fleet"]}
    found = []
    for pool in ("decode", "prefill"):
        part, said = parts.get(pool), values[pool]
        if said["create"] != (part is not None):
            found.append(f"{pool}.create is {said['create']}")
        if not part or not said["create"]:
            continue
        gpus = part["tp"] * part["pp"] * part["dp"]
        nodes = -(-gpus // per_node)
        container, cut = said["containers"][0], said["parallelism"]
        if said["replicas"] != part["replicas"] or cut["workers"] != nodes or (nodes > 1 and not values["multinode"]):
            found.append(f"{pool}: {said['replicas']} replicas of {cut['workers']} pods, not {part['replicas']} of {nodes}")
        if int(container["resources"]["limits"]["nvidia.com/gpu"]) * nodes != gpus:
            found.append(f"{pool}: {container['resources']['limits']} of each pod, not {gpus} in all")
        for rank in range(nodes):
            words = rendered(values, pool, rank)
            if connector(words) != (NIXL if len(parts) == 2 else None):
                found.append(f"{pool}: --kv-transfer-config {connector(words)}")
            if ("--headless" in words) != (rank > 0) or (nodes > 1 and words[words.index("--node-rank") + 1] != str(rank)):
                found.append(f"{pool}: pod {rank} runs {words}")
            if str(container["ports"][0]["containerPort"]) != words[words.index("--port") + 1]:
                found.append(f"{pool}: port {container['ports']}, but {words}")
            got, want = served(cluster, [w for w in without_connector(words) if w != "--headless"]), wanted(part, values["modelArtifacts"]["name"])
            if got != want:
                found.append(f"{pool}: {got}, not {want}")
    return found


def dynamo_faults(manifest, plan, cluster, per_node):
    components, found = manifest["spec"]["components"][1:], []
    if len(components) != len(plan["best"]["fleet"]):
        found.append(f"{len(components)} components")
    for said, part in zip(components, plan["best"]["fleet"]):
        gpus = part["tp"] * part["pp"] * part["dp"]
        nodes = -(-gpus // per_node)
        container = said["podTemplate"]["spec"]["containers"][0]
        args = container["args"]
        model = args[args.index("--model") + 1]
        rest = without_connector([w for i, w in enumerate(args) if w != "--model" and (i == 0 or args[i - 1] != "--model")])
        if "--disaggregation-mode" in rest:
            at = rest.index("--disaggregation-mode")
            if rest[at + 1] != part["role"]:
                found.append(f"{said['name']} is {rest[at + 1]}")
            del rest[at:at + 2]
        if (said["replicas"], said.get("multinode", {}).get("nodeCount", 1)) != (part["replicas"], nodes):
            found.append(f"{said['name']}: {said['replicas']} replicas")
        if int(container["resources"]["limits"]["nvidia.com/gpu"]) * nodes != gpus:
            found.append(f"{said['name']}: {container['resources']['limits']}")
        got, want = served(cluster, ["vllm", "serve", model, *rest]), wanted(part, model)
        if got != want:
            found.append(f"{said['name']}: {got}, not {want}")
    return found


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="maq-test-") as folder:
        helm, graph = pathlib.Path(folder) / "values.yaml", pathlib.Path(folder) / "graph.yaml"
        for name, words in FLEETS.items():
            got = run("serve", "plan", *words, *SHORT, "--json", "--write-helm-values", str(helm), "--write-manifest", str(graph))
            plan = json.loads(got.stdout)
            cluster, per_node = words[words.index("--cluster") + 1], int(words[words.index("--cluster") + 1].split(":")[1].split()[0])
            if (len(plan["best"]["fleet"]) == 2) != (name == "pools"):
                tap.result(False, f"what wins of {name} is what they are for", json.dumps(plan["best"]["fleet"]))
            found = helm_faults(yaml.safe_load(helm.read_text(encoding="utf-8")), plan, cluster, per_node)
            tap.result(not found, f"llm-d, {name}", "\n".join(found))
            found = dynamo_faults(yaml.safe_load(graph.read_text(encoding="utf-8")), plan, cluster, per_node)
            tap.result(not found, f"Dynamo, {name}", "\n".join(found))
        got = run("serve", "plan", *FLEETS["replicas"], *SHORT, "--engine", "sglang", "--max-model-len", "8192", "--write-helm-values", str(helm))
        tap.result("MAQ1894" in got.stderr and "--write-manifest" in got.stderr, "an engine that the chart does not start is refused", got.stderr)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
