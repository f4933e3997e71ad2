/* elf.h - which generation of CUDA's libraries a program asks for, and what a stand-in can be asked for as. */
#ifndef MAQ_LAUNCH_ELF_H
#define MAQ_LAUNCH_ELF_H

#include "base/arena.h"

/* The names of libraries that a 64-bit little-endian ELF file needs (DT_NEEDED), one call each. false: no such file. */
typedef void maq_elf_fn(void *user, const char *name);
bool maq_elf_needed(const char *path, maq_elf_fn *call, void *user);

/*
 * Whether a program has kernels (.nv_fatbin) and CUDA's runtime inside of it, since it needs no libcudart: what nvcc makes by default. Nothing
 * can stand in for that runtime. false for scripts, and for what a program loads later.
 */
bool maq_elf_has_runtime(const char *program);

/*
 * 12 or 13. What the program needs says it (libcudart.so.12); of a script, and of an interpreter of Python, what NVIDIA's wheels beside
 * that interpreter are: site-packages/nvidia/cuda_runtime is CUDA 12, nvidia/cu13 is 13. Otherwise 13.
 */
uint32_t maq_elf_generation(const char *program);

#endif
