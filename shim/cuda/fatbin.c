/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fatbin.c - the fat binary that nvcc embeds, and the cubin (ELF) in it.
 *
 *   fat binary   magic ba55ed50, version (2), bytes of the head (2), bytes of the rest (8); then entries:
 *                kind (2: 1 PTX, 2 cubin), version (2), head bytes (4), payload bytes (8), compressed bytes (4), ...,
 *                architecture (at 28, 4), ..., flags (at 40, 8: 2000 LZ4, 8000 zstd), ..., unpacked bytes (at 56, 8)
 *   cubin        ELF64; section .nv.info.<kernel> is a list of attributes {format (1), attribute (1), value or size (2)};
 *                attribute 17 (KPARAM_INFO) has 12 bytes: index, ordinal (2), offset (2), and a word whose upper 14
 *                bits are the size; where parameters take more than 4 KiB it is attribute 45, whose word is the size.
 *                .text.<kernel>: registers in the upper byte of sh_info. .nv.shared.<kernel>: its size; where there is a
 *                section .nv.shared.reserved.0 (from Hopper on), with the 1,024 bytes that the device keeps of every block,
 *                which are no kernel's.
 *
 * Layouts: NVIDIA's cuobjdump --dump-elf output on known kernels, and the published notes of the ZLUDA and
 * cuda-fatbin-decompression projects. zstd comes from libzstd.so.1 where the process can load it; LZ4 blocks are undone here.
 */
#include "shim/cuda/fatbin.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { FAT_MAGIC = (int)0xba55ed50, FAT_HEAD = 16, ENTRY_HEAD = 64, KIND_CUBIN = 2 };
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };
enum { ATTR_KPARAM_INFO = 0x17, ATTR_KPARAM_INFO_2 = 0x45, ATTR_MAX_THREADS = 0x05, FORMAT_SIZED = 4 };
enum { UNPACKED_MOST = 1 << 30, LZ4_RATIO_MOST = 255 };

struct bytes {
    const unsigned char *at;
    uint64_t n;
};

static uint64_t little(const unsigned char *at, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

uint64_t vg_image_bytes(const void *image)
{
    const unsigned char *at = image;
    if (little(at, 4) == (uint32_t)FAT_MAGIC)
        return little(at + 6, 2) + little(at + 8, 8);
    if (memcmp(at, ELFMAG, SELFMAG) == 0 && at[EI_CLASS] == ELFCLASS64) { /* ends with its section or program headers */
        Elf64_Ehdr head;
        memcpy(&head, at, sizeof head);
        uint64_t sections = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
        uint64_t programs = head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize;
        return sections > programs ? sections : programs;
    }
    return 0;
}

/* --- compressed entries --------------------------------------------------------------------------------------------------- */

/* One LZ4 block (lz4_Block_format.md of the LZ4 project): true when it gives exactly `n` bytes or ends before. */
static bool unpack_lz4(unsigned char *out, uint64_t n, struct bytes in)
{
    uint64_t i = 0, o = 0;
    while (i < in.n) {
        unsigned token = in.at[i++];
        uint64_t run = token >> 4;
        for (unsigned char more = 255; run >= 15 && more == 255 && i < in.n; run += more)
            more = in.at[i++];
        if (run > in.n - i || run > n - o)
            return false;
        memcpy(out + o, in.at + i, run);
        i += run;
        o += run;
        if (i + 2 > in.n)
            return o == n; /* the last sequence has no match */
        uint64_t back = little(in.at + i, 2);
        i += 2;
        uint64_t match = token & 15;
        for (unsigned char more = 255; match >= 15 && more == 255 && i < in.n; match += more)
            more = in.at[i++];
        match += 4;
        if (back == 0 || back > o || match > n - o)
            return false;
        for (; match > 0; match--, o++)
            out[o] = out[o - back];
    }
    return o == n;
}

static bool unpack_zstd(unsigned char *out, uint64_t n, struct bytes in)
{
    typedef size_t unpack_fn(void *, size_t, const void *, size_t);
    static unpack_fn *unpack;
    static bool tried;
    if (!tried) {
        void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
        void *symbol = library != NULL ? dlsym(library, "ZSTD_decompress") : NULL;
        memcpy(&unpack, &symbol, sizeof unpack);
        tried = true;
    }
    return unpack != NULL && unpack(out, n, in.at, in.n) == n;
}

/* --- cubins ------------------------------------------------------------------------------------------------------------- */

struct cubin {
    struct bytes file;
    Elf64_Ehdr head;
    struct bytes names;
};

static bool section(const struct cubin *c, unsigned i, Elf64_Shdr *out)
{
    uint64_t at = c->head.e_shoff + (uint64_t)i * sizeof *out;
    if (c->head.e_shoff > c->file.n || at > c->file.n || c->file.n - at < sizeof *out)
        return false;
    memcpy(out, c->file.at + at, sizeof *out);
    return true;
}

static bool contents(const struct cubin *c, const Elf64_Shdr *s, struct bytes *out)
{
    if (s->sh_type == SHT_NOBITS || s->sh_offset > c->file.n || s->sh_size > c->file.n - s->sh_offset)
        return false;
    *out = (struct bytes){c->file.at + s->sh_offset, s->sh_size};
    return true;
}

/* Name of a section; "" when it has none. */
static const char *name_of(const struct cubin *c, const Elf64_Shdr *s)
{
    if (s->sh_name >= c->names.n || memchr(c->names.at + s->sh_name, '\0', c->names.n - s->sh_name) == NULL)
        return "";
    return (const char *)c->names.at + s->sh_name;
}

static bool open_cubin(struct cubin *c, struct bytes file)
{
    Elf64_Shdr strings;
    c->file = file;
    if (file.n < sizeof c->head || memcmp(file.at, ELFMAG, SELFMAG) != 0 || file.at[EI_CLASS] != ELFCLASS64)
        return false;
    memcpy(&c->head, file.at, sizeof c->head);
    return c->head.e_shentsize == sizeof strings && section(c, c->head.e_shstrndx, &strings) &&
           contents(c, &strings, &c->names);
}

static bool take_param(struct vg_code *code, const unsigned char *at, bool is_wide)
{
    uint32_t ordinal = (uint32_t)little(at + 4, 2), n = ordinal + 1;
    if (n > VG_PARAMS_MOST)
        return false;
    if (n > code->n_params) {
        struct vg_param *bigger = realloc(code->param, n * sizeof *bigger);
        if (bigger == NULL)
            return false;
        memset(bigger + code->n_params, 0, (n - code->n_params) * sizeof *bigger);
        code->param = bigger;
        code->n_params = n;
    }
    const uint32_t word = (uint32_t)little(at + 8, 4);
    code->param[ordinal] = (struct vg_param){(uint32_t)little(at + 6, 2), is_wide ? word : word >> 18};
    return true;
}

static void read_info(struct vg_code *code, struct bytes info)
{
    for (uint64_t i = 0; i + 4 <= info.n;) {
        unsigned format = info.at[i], attribute = info.at[i + 1];
        uint64_t size = format == FORMAT_SIZED ? little(info.at + i + 2, 2) : 0;
        i += 4;
        if (size > info.n - i)
            return;
        const bool is_wide = attribute == ATTR_KPARAM_INFO_2;
        if ((attribute == ATTR_KPARAM_INFO || is_wide) && size == 12 && !take_param(code, info.at + i, is_wide))
            return;
        if (attribute == ATTR_MAX_THREADS && size == 12)
            code->max_threads =
                (uint32_t)(little(info.at + i, 4) * little(info.at + i + 4, 4) * little(info.at + i + 8, 4));
        i += size;
    }
}

/* Which of the wanted kernels a section is about; n = none. */
static uint32_t about(const char *section, const char *prefix, const char *const *name, uint32_t n)
{
    size_t len = strlen(prefix);
    if (strncmp(section, prefix, len) != 0)
        return n;
    for (uint32_t i = 0; i < n; i++)
        if (name[i] != NULL && strcmp(section + len, name[i]) == 0)
            return i;
    return n;
}

static bool is_reserved_shared(const struct cubin *c, const Elf64_Shdr *s)
{
    static const char prefix[] = ".nv.shared.reserved.";
    return strncmp(name_of(c, s), prefix, sizeof prefix - 1) == 0;
}

static void read_section(const struct cubin *c, const Elf64_Shdr *s, struct vg_code *code, const char *const *name,
                         uint32_t n)
{
    const char *title = name_of(c, s);
    struct bytes info;
    uint32_t i = about(title, ".nv.info.", name, n);
    if (i < n && !code[i].found && contents(c, s, &info)) {
        read_info(&code[i], info);
        code[i].found = true;
    }
    if ((i = about(title, ".text.", name, n)) < n)
        code[i].registers = s->sh_info >> 24;
    if ((i = about(title, ".nv.shared.", name, n)) < n)
        code[i].shared_bytes = (uint32_t)s->sh_size;
}

static void read_cubin(struct bytes file, struct vg_code *code, const char *const *name, uint32_t n)
{
    struct cubin c;
    Elf64_Shdr s;
    bool reserved = false;
    if (!open_cubin(&c, file))
        return;
    for (unsigned i = 0; i < c.head.e_shnum && section(&c, i, &s); i++) {
        reserved = reserved || is_reserved_shared(&c, &s);
        read_section(&c, &s, code, name, n);
    }
    for (uint32_t i = 0; reserved && i < n; i++)
        if (code[i].shared_bytes >= VG_RESERVED_SHARED)
            code[i].shared_bytes -= VG_RESERVED_SHARED;
}

/* --- fat binaries --------------------------------------------------------------------------------------------------------- */

struct entry {
    struct bytes packed;
    uint64_t flags, unpacked;
    uint32_t capability;
};

/* The next cubin at *at or after it. */
static bool next_entry(struct entry *out, struct bytes fat, uint64_t *at)
{
    while (*at + ENTRY_HEAD <= fat.n) {
        const unsigned char *e = fat.at + *at;
        uint64_t head = little(e + 4, 4), payload = little(e + 8, 8), packed = little(e + 16, 4);
        if (head < ENTRY_HEAD || head > fat.n - *at || payload > fat.n - *at - head)
            return false;
        *out = (struct entry){.packed = {e + head, packed > 0 && packed <= payload ? packed : payload},
                              .flags = little(e + 40, 8),
                              .unpacked = little(e + 56, 8),
                              .capability = (uint32_t)little(e + 28, 4)};
        *at += head + payload;
        if (little(e, 2) == KIND_CUBIN)
            return true;
    }
    return false;
}

/* Code runs on its own architecture and on later minor ones of it. */
static bool better(uint32_t a, uint32_t b, uint32_t wanted)
{
    bool a_runs = a / 10 == wanted / 10 && a <= wanted, b_runs = b / 10 == wanted / 10 && b <= wanted;
    return a_runs != b_runs ? a_runs : a > b;
}

/* The cubin that fits best; its bytes are the caller's when *owned is set. */
static struct bytes pick(struct bytes image, uint32_t capability, unsigned char **owned)
{
    struct entry e, best = {.capability = 0};
    bool any = false;
    *owned = NULL;
    if (image.n < FAT_HEAD || little(image.at, 4) != (uint32_t)FAT_MAGIC)
        return image;
    for (uint64_t at = little(image.at + 6, 2); next_entry(&e, image, &at);)
        if (!any || better(e.capability, best.capability, capability)) {
            best = e;
            any = true;
        }
    struct bytes none = {NULL, 0};
    if (!any)
        return none;
    if (!(best.flags & (FLAG_LZ4 | FLAG_ZSTD)))
        return best.packed;
    if (best.flags & FLAG_LZ4 && best.unpacked / LZ4_RATIO_MOST > best.packed.n)
        return none;
    if (best.unpacked == 0 || best.unpacked > UNPACKED_MOST || (*owned = malloc(best.unpacked)) == NULL)
        return none;
    bool ok = best.flags & FLAG_ZSTD ? unpack_zstd(*owned, best.unpacked, best.packed)
                                     : unpack_lz4(*owned, best.unpacked, best.packed);
    return ok ? (struct bytes){*owned, best.unpacked} : none;
}

uint32_t vg_image_read(struct vg_code *code, const char *const *name, uint32_t n, const void *image, uint64_t bytes,
                       uint32_t capability)
{
    unsigned char *owned;
    uint32_t found = 0;
    struct bytes cubin = pick((struct bytes){image, bytes}, capability, &owned);
    read_cubin(cubin, code, name, n);
    free(owned);
    for (uint32_t i = 0; i < n; i++)
        found += code[i].found;
    return found;
}

void vg_image_kernels(const void *image, uint64_t bytes, uint32_t capability,
                      void (*each)(const char *name, void *user), void *user)
{
    static const char prefix[] = ".nv.info.";
    unsigned char *owned;
    struct cubin c;
    Elf64_Shdr s;
    if (open_cubin(&c, pick((struct bytes){image, bytes}, capability, &owned)))
        for (unsigned i = 0; i < c.head.e_shnum && section(&c, i, &s); i++)
            if (strncmp(name_of(&c, &s), prefix, sizeof prefix - 1) == 0)
                each(name_of(&c, &s) + sizeof prefix - 1, user);
    free(owned);
}
