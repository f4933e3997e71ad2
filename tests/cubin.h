/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cubin.h - makes small fat binaries for tests, from the layout that shim/cuda/fatbin.c states: one ELF file with the
 * parameters of kernels, wrapped, and packed if asked for.
 */
#ifndef MAQ_TESTS_CUBIN_H
#define MAQ_TESTS_CUBIN_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct cubin_kernel {
    const char *name;
    unsigned n, bytes[8]; /* parameters */
    unsigned shared;      /* bytes of its section of shared memory; 0: it has none */
    bool reserves;        /* the file says that they begin with the device's own */
};

static inline void cubin_word(unsigned char *at, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

/* A section without bytes in the file. */
static inline void cubin_no_bits(Elf64_Shdr *section, char *names, size_t *used, const char *title, unsigned size)
{
    section->sh_name = (Elf64_Word)*used;
    section->sh_type = SHT_NOBITS;
    section->sh_size = size;
    *used += (size_t)sprintf(names + *used, ".nv.shared.%s", title) + 1;
}

/* An ELF file with .nv.info.NAME for each kernel; its size. out has room for 16 KiB. */
static inline size_t cubin_elf(unsigned char *out, const struct cubin_kernel *kernels, unsigned n)
{
    Elf64_Shdr section[16];
    char names[1024] = "";
    size_t used = 1, at = sizeof(Elf64_Ehdr);
    unsigned s = 1;
    memset(section, 0, sizeof section);
    memset(out, 0, 16384);
    for (unsigned k = 0; k < n; k++) {
        section[s].sh_name = (Elf64_Word)used;
        section[s].sh_type = 0x70000000; /* of the processor */
        section[s].sh_offset = at;
        used += (size_t)sprintf(names + used, ".nv.info.%s", kernels[k].name) + 1;
        unsigned offset = 0;
        for (unsigned i = 0; i < kernels[k].n; i++, at += 16) {
            out[at] = 4;
            out[at + 1] = 0x17;
            cubin_word(out + at + 2, 12, 2);
            cubin_word(out + at + 8, i, 2);
            cubin_word(out + at + 10, offset, 2);
            cubin_word(out + at + 12, (uint64_t)kernels[k].bytes[i] << 18, 4);
            offset += kernels[k].bytes[i];
        }
        section[s].sh_size = at - section[s].sh_offset;
        s++;
        section[s].sh_name = (Elf64_Word)used;
        section[s].sh_type = SHT_PROGBITS;
        section[s].sh_info = 40u << 24; /* registers */
        section[s].sh_offset = at;
        used += (size_t)sprintf(names + used, ".text.%s", kernels[k].name) + 1;
        s++;
        if (kernels[k].shared > 0)
            cubin_no_bits(&section[s++], names, &used, kernels[k].name, kernels[k].shared);
        if (kernels[k].reserves)
            cubin_no_bits(&section[s++], names, &used, "reserved.0", 0);
    }
    section[s].sh_type = SHT_STRTAB;
    section[s].sh_offset = at;
    section[s].sh_size = used;
    memcpy(out + at, names, used);
    at = (at + used + 7) / 8 * 8;
    Elf64_Ehdr head = {.e_machine = 190,
                       .e_shoff = at,
                       .e_shentsize = sizeof *section,
                       .e_shnum = (Elf64_Half)(s + 1),
                       .e_shstrndx = (Elf64_Half)s};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    memcpy(out, &head, sizeof head);
    memcpy(out + at, section, (s + 1) * sizeof *section);
    return at + (s + 1) * sizeof *section;
}

/* An entry of a fat binary behind `at`; the new end. */
static inline size_t cubin_entry(unsigned char *out, size_t at, unsigned kind, unsigned capability, uint64_t flags,
                                 const void *payload, size_t bytes, size_t unpacked)
{
    size_t padded = (bytes + 7) / 8 * 8;
    memset(out + at, 0, 64 + padded);
    cubin_word(out + at, kind, 2);
    cubin_word(out + at + 4, 64, 4);
    cubin_word(out + at + 8, padded, 8);
    cubin_word(out + at + 16, flags ? bytes : 0, 4);
    cubin_word(out + at + 28, capability, 4);
    cubin_word(out + at + 40, flags, 8);
    cubin_word(out + at + 56, unpacked, 8);
    memcpy(out + at + 64, payload, bytes);
    return at + 64 + padded;
}

/* The head of a fat binary whose entries end at `end`. Entries begin at 16. */
static inline void cubin_head(unsigned char *out, size_t end)
{
    cubin_word(out, 0xba55ed50, 4);
    cubin_word(out + 4, 1, 2);
    cubin_word(out + 6, 16, 2);
    cubin_word(out + 8, end - 16, 8);
}

/* An LZ4 block of literals, with one match at the end of a run of zeros where there is one. */
static inline size_t cubin_lz4(unsigned char *out, const unsigned char *in, size_t n)
{
    size_t zeros = 0, o = 0, start = n;
    for (size_t i = 0; i < n && start == n; i++) {
        zeros = in[i] == 0 ? zeros + 1 : 0;
        if (zeros == 32)
            start = i; /* in[start - 31 .. start] are zeros: the last 20 of them are copied from one before */
    }
    for (int part = 0; part < 2; part++) {
        size_t from = part == 0 ? 0 : start + 1, to = part == 0 ? (start == n ? n : start - 19) : n, len = to - from;
        bool match = part == 0 && start != n;
        out[o++] = (unsigned char)((len >= 15 ? 15 : len) << 4 | (match ? 15 : 0));
        if (len >= 15) {
            size_t rest = len - 15;
            for (; rest >= 255; rest -= 255)
                out[o++] = 255;
            out[o++] = (unsigned char)rest;
        }
        memcpy(out + o, in + from, len);
        o += len;
        if (!match)
            break;
        out[o++] = 1; /* one byte back */
        out[o++] = 0;
        out[o++] = 20 - 4 - 15;
    }
    return o;
}

#endif
