# SPDX-License-Identifier: Apache-2.0
"""Loads a cubin with three kernels, built here, and lists them through the driver and the runtime as CUDA 12.4 and later do."""
import ctypes
import struct


def cubin(names):
    """An ELF file of nothing but sections .nv.info.<kernel>, each empty, and their names."""
    titles = ["", ".shstrtab"] + [".nv.info." + n for n in names]
    text = b"".join(t.encode() + b"\0" for t in titles)
    offset, at = {}, 0
    for t in titles:
        offset[t] = at
        at += len(t) + 1
    body = 64 + len(text) + 64
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, body, 0x5A055A, 64, 0, 0, 64, len(titles), 1)
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", offset[".shstrtab"], 3, 0, 0, 64, len(text), 0, 0, 1, 0)
    for t in titles[2:]:
        sections += struct.pack("<IIQQQQIIQQ", offset[t], 0x70000000, 0, 0, 64 + len(text), 4, 0, 0, 4, 0)
    return head + text + bytes(64) + sections


def main():
    names = ["axpy", "scale", "norm"]
    code = ctypes.create_string_buffer(cubin(names), len(cubin(names)))
    driver, runtime = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudart.so.13")
    library, module, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
    assert driver.cuInit(0) == 0
    assert driver.cuLibraryLoadData(ctypes.byref(library), code, None, None, 0, None, None, 0) == 0
    assert driver.cuModuleLoadData(ctypes.byref(module), code) == 0
    for count, each, handle in ((driver.cuLibraryGetKernelCount, driver.cuLibraryEnumerateKernels, library),
                                (driver.cuModuleGetFunctionCount, driver.cuModuleEnumerateFunctions, module),
                                (runtime.cudaLibraryGetKernelCount, runtime.cudaLibraryEnumerateKernels, library)):
        assert count(ctypes.byref(n), handle) == 0 and n.value == 3, n.value
        assert count(ctypes.byref(n), None) != 0
        kernels = (ctypes.c_void_p * 4)()
        assert each(kernels, 2, handle) == 0 and kernels[1] and not kernels[2]
        assert each(kernels, 3, handle) == 0 and not kernels[3]
        told = []
        for k in kernels[:3]:
            name = ctypes.c_char_p()
            assert driver.cuKernelGetName(ctypes.byref(name), ctypes.c_void_p(k)) == 0
            told.append(name.value.decode())
        assert told == names, told
        found = ctypes.c_void_p()
        assert driver.cuLibraryGetKernel(ctypes.byref(found), library, b"scale") == 0
    print("three kernels, three ways")


main()
