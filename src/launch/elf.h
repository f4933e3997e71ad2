/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.h - reads ELF files: which generation of CUDA's libraries a program needs, and whether its CUDA runtime can be
 * replaced.
 */
#ifndef MAQ_LAUNCH_ELF_H
#define MAQ_LAUNCH_ELF_H

#include "base/arena.h"

/* The names of libraries that a 64-bit little-endian ELF file needs (DT_NEEDED), one call each. false: no such file. */
typedef void maq_elf_fn(void *user, const char *name);
bool maq_elf_needed(const char *path, maq_elf_fn *call, void *user);

/*
 * Whether a program contains kernels (.nv_fatbin) and links CUDA's runtime statically, which nvcc does by default: such a runtime
 * cannot be replaced. false for scripts, and for libraries that a program loads later.
 */
bool maq_elf_has_runtime(const char *program);

/*
 * 12 or 13: by the libraries that the program needs (libcudart.so.12); for a script or a Python interpreter by NVIDIA's wheels in
 * the interpreter's site-packages: site-packages/nvidia/cuda_runtime is CUDA 12, nvidia/cu13 is 13. Otherwise 13.
 */
uint32_t maq_elf_generation(const char *program);

#endif
