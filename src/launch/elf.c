/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.c - the needed libraries of an ELF file, and the interpreter of a script: see elf.h.
 *
 * System V ABI, "Object Files" and "Dynamic Linking": the program headers name the dynamic section; its DT_NEEDED entries are
 * offsets into the string table at the address DT_STRTAB, which a PT_LOAD segment maps to a place in the file. Every offset is
 * checked.
 */
#include "launch/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#define GENERATION_DEFAULT 13

struct file {
    const unsigned char *at;
    size_t n;
};

static bool map(struct file *f, const char *path)
{
    struct stat info;
    *f = (struct file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        f->at = at != MAP_FAILED ? at : NULL;
        f->n = (size_t)info.st_size;
    }
    close(fd);
    return f->at != NULL;
}

/* n bytes from an offset; false: the file has fewer. */
static bool take(void *out, const struct file *f, uint64_t off, size_t n)
{
    if (off > f->n || f->n - off < n)
        return false;
    memcpy(out, f->at + off, n);
    return true;
}

static bool header(Elf64_Ehdr *h, const struct file *f)
{
    return take(h, f, 0, sizeof *h) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 &&
           h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_phentsize == sizeof(Elf64_Phdr);
}

/* A segment of a type that holds an address (of any, where it is UINT64_MAX). */
static bool segment(Elf64_Phdr *out, const struct file *f, const Elf64_Ehdr *h, uint32_t type, uint64_t address)
{
    for (uint32_t i = 0; i < h->e_phnum && i < PN_XNUM; i++)
        if (take(out, f, h->e_phoff + (uint64_t)i * sizeof *out, sizeof *out) && out->p_type == type &&
            (address == UINT64_MAX || (address >= out->p_vaddr && address - out->p_vaddr < out->p_filesz)))
            return true;
    return false;
}

static bool entry(Elf64_Dyn *out, const struct file *f, const Elf64_Phdr *dynamic, uint64_t i)
{
    return i < dynamic->p_filesz / sizeof *out && take(out, f, dynamic->p_offset + i * sizeof *out, sizeof *out) &&
           out->d_tag != DT_NULL;
}

/* Where in the file the names are. */
static bool names(uint64_t *out, const struct file *f, const Elf64_Ehdr *h, const Elf64_Phdr *dynamic)
{
    Elf64_Dyn d;
    Elf64_Phdr load;
    for (uint64_t i = 0; entry(&d, f, dynamic, i); i++)
        if (d.d_tag == DT_STRTAB && segment(&load, f, h, PT_LOAD, d.d_un.d_ptr)) {
            *out = load.p_offset + (d.d_un.d_ptr - load.p_vaddr);
            return *out < f->n;
        }
    return false;
}

bool maq_elf_needed(const char *path, maq_elf_fn *call, void *user)
{
    struct file f;
    Elf64_Ehdr h;
    Elf64_Phdr dynamic;
    Elf64_Dyn d;
    uint64_t text;
    if (!map(&f, path))
        return false;
    bool fine = header(&h, &f);
    if (fine && segment(&dynamic, &f, &h, PT_DYNAMIC, UINT64_MAX) && names(&text, &f, &h, &dynamic))
        for (uint64_t i = 0; entry(&d, &f, &dynamic, i); i++)
            if (d.d_tag == DT_NEEDED && d.d_un.d_val < f.n - text) {
                const char *name = (const char *)f.at + text + d.d_un.d_val;
                if (memchr(name, '\0', f.n - text - d.d_un.d_val))
                    call(user, name);
            }
    munmap((void *)(uintptr_t)f.at, f.n);
    return fine;
}

/* ---- the runtime inside ---- */

static void look_for_runtime(void *user, const char *name)
{
    bool *needed = user;
    *needed = *needed || strncmp(name, "libcudart.so", strlen("libcudart.so")) == 0;
}

static bool is_called(const struct file *f, const Elf64_Shdr *names, uint32_t at, const char *name)
{
    char text[32] = "";
    return strlen(name) < sizeof text && at < names->sh_size &&
           take(text, f, names->sh_offset + at, strlen(name) + 1) && strcmp(text, name) == 0;
}

static bool has_section(const struct file *f, const Elf64_Ehdr *h, const char *name)
{
    Elf64_Shdr names, s;
    if (h->e_shentsize != sizeof s || !take(&names, f, h->e_shoff + (uint64_t)h->e_shstrndx * sizeof s, sizeof names))
        return false;
    for (uint32_t i = 0; i < h->e_shnum && take(&s, f, h->e_shoff + (uint64_t)i * sizeof s, sizeof s); i++)
        if (is_called(f, &names, s.sh_name, name))
            return true;
    return false;
}

bool maq_elf_has_runtime(const char *program)
{
    struct file f;
    Elf64_Ehdr h;
    bool shared = false;
    if (!maq_elf_needed(program, look_for_runtime, &shared) || shared || !map(&f, program))
        return false;
    bool has = header(&h, &f) && has_section(&f, &h, ".nv_fatbin");
    munmap((void *)(uintptr_t)f.at, f.n);
    return has;
}

/* ---- generations ---- */

static void look(void *user, const char *name)
{
    static const char *const libraries[] = {"libcudart.so.", "libcublas.so.", "libcublasLt.so.", "libnvrtc.so."};
    uint32_t *generation = user;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        size_t n = strlen(libraries[i]);
        if (strncmp(name, libraries[i], n) == 0 && (strcmp(name + n, "12") == 0 || strcmp(name + n, "13") == 0))
            *generation = name[n + 1] == '2' ? 12 : 13;
    }
}

static bool matches(const char *folder, const char *pattern)
{
    char whole[PATH_MAX];
    glob_t found;
    int n = snprintf(whole, sizeof whole, "%s/%s", folder, pattern);
    if (n < 0 || (size_t)n >= sizeof whole || glob(whole, GLOB_NOSORT, NULL, &found) != 0)
        return false;
    globfree(&found);
    return true;
}

/* NVIDIA's wheels of an interpreter: FOLDER/bin/python3 has FOLDER/lib/python3.x/site-packages. */
static uint32_t of_wheels(const char *interpreter)
{
    char folder[PATH_MAX];
    size_t n = strlen(interpreter);
    if (n >= sizeof folder)
        return 0;
    memcpy(folder, interpreter, n + 1);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(folder, '/');
        if (!slash)
            return 0;
        *slash = '\0';
    }
    if (matches(folder, "lib/python3*/site-packages/nvidia/cu13"))
        return 13;
    return matches(folder, "lib/python3*/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12") ? 12 : 0;
}

/* What follows "#!" in a script: its interpreter, or the program that env is to find. */
static bool interpreter_of(char out[PATH_MAX], const char *script)
{
    char line[PATH_MAX] = "", word[2][PATH_MAX] = {"", ""};
    FILE *f = fopen(script, "re");
    bool fine = f && fgets(line, sizeof line, f) && line[0] == '#' && line[1] == '!';
    if (f)
        fclose(f);
    const char *at = line + 2;
    for (int i = 0; fine && i < 2; i++) {
        at += strspn(at, " \t");
        size_t n = strcspn(at, " \t\r\n");
        memcpy(word[i], at, n);
        word[i][n] = '\0';
        at += n;
    }
    const char *slash = strrchr(word[0], '/');
    bool env = slash && strcmp(slash, "/env") == 0;
    memcpy(out, word[env], sizeof word[0]);
    return fine && out[0] != '\0';
}

/* `env python3` is found as the shell does. */
static void find(char path[PATH_MAX])
{
    struct maq_str rest = maq_str_of(getenv("PATH")), folder;
    char at[PATH_MAX];
    while (!strchr(path, '/') && rest.ptr) {
        rest = maq_str_split(rest, ':', &folder);
        int n = snprintf(at, sizeof at, "%.*s/%s", (int)folder.len, folder.ptr, path);
        if (n > 0 && (size_t)n < sizeof at && access(at, X_OK) == 0)
            memcpy(path, at, sizeof at);
    }
}

uint32_t maq_elf_generation(const char *program)
{
    uint32_t generation = 0;
    char interpreter[PATH_MAX];
    bool binary = maq_elf_needed(program, look, &generation);
    if (generation == 0 && binary)
        generation = of_wheels(program);
    if (!binary && interpreter_of(interpreter, program)) {
        find(interpreter);
        generation = of_wheels(interpreter);
    }
    return generation != 0 ? generation : GENERATION_DEFAULT;
}
