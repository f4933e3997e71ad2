# SPDX-License-Identifier: Apache-2.0
"""NVML through NVIDIA's own binding (nvidia-ml-py), which knows the layouts: the card's figures, and PyTorch's view of them."""
import os

import pynvml
import torch

pynvml.nvmlInit()
assert pynvml.nvmlDeviceGetCount() == torch.cuda.device_count()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
properties = torch.cuda.get_device_properties(0)
assert pynvml.nvmlDeviceGetName(device) == properties.name
assert pynvml.nvmlDeviceGetUUID(device) == f"GPU-{properties.uuid}"
assert pynvml.nvmlDeviceGetCudaComputeCapability(device) == [properties.major, properties.minor] \
    or pynvml.nvmlDeviceGetCudaComputeCapability(device) == (properties.major, properties.minor)

pci = pynvml.nvmlDeviceGetPciInfo(device)
assert (pci.domain, pci.bus, pci.device) == (properties.pci_domain_id, properties.pci_bus_id, properties.pci_device_id)
again = pynvml.nvmlDeviceGetHandleByPciBusId(pci.busId)
assert pynvml.nvmlDeviceGetIndex(again) == 0
assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(device))) == 0

memory = pynvml.nvmlDeviceGetMemoryInfo(device)
assert memory.total == properties.total_memory and memory.free + memory.used == memory.total
x = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
assert pynvml.nvmlDeviceGetMemoryInfo(device).used >= memory.used + (64 << 20)
mine = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
assert [p.pid for p in mine] == [os.getpid()]

assert pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM) > 0
assert pynvml.nvmlDeviceGetPowerManagementLimit(device) > 0
assert pynvml.nvmlDeviceGetNvLinkState(device, 0) == 0
print("utilisation", torch.cuda.utilization(), "driver", pynvml.nvmlSystemGetDriverVersion())
pynvml.nvmlShutdown()
