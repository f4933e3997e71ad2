# SPDX-License-Identifier: Apache-2.0
"""The least that a PyTorch program does on a device: find it, allocate, multiply, read a value back."""
import torch

assert torch.cuda.is_available()
device = torch.cuda.get_device_properties(0)
print(device.name, device.major, device.minor, device.multi_processor_count, device.total_memory)
assert torch.cuda.device_count() >= 1 and device.multi_processor_count > 0

x = torch.randn(4, 4, device="cuda")
value = (x @ x).sum().item()
assert isinstance(value, float)

# What the host wrote is there; what a kernel would have written is not.
kept = torch.arange(100, dtype=torch.float32).to("cuda").cpu()
assert kept.tolist() == list(range(100))

# The caching allocator is host logic, so its numbers are exact: blocks of 512 bytes, segments of 2 and 20 MiB.
torch.cuda.empty_cache()
before = torch.cuda.memory_allocated()
y = torch.empty(1000, 1001, device="cuda")
assert torch.cuda.memory_allocated() - before == (1000 * 1001 * 4 + 511) // 512 * 512
del y
big = torch.empty(3 << 28, dtype=torch.uint8, device="cuda")
assert torch.cuda.max_memory_allocated() == before + (3 << 28)
del big
torch.cuda.empty_cache()
free, total = torch.cuda.mem_get_info()
try:
    torch.empty(total, dtype=torch.uint8, device="cuda")
    raise SystemExit("more memory than there is")
except torch.OutOfMemoryError as error:
    assert "out of memory" in str(error)

start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
a = torch.empty(4096, 4096, device="cuda", dtype=torch.bfloat16)
start.record()
b = a @ a
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) > 0
with torch.cuda.stream(torch.cuda.Stream()):
    c = b + 1
torch.cuda.current_stream().wait_stream(torch.cuda.Stream())
torch.cuda.synchronize()
print("peak", torch.cuda.max_memory_allocated())
