/* SPDX-License-Identifier: Apache-2.0 */
/*
 * triton_cache.c - finds the PTX of a kernel in Triton's cache: the folder whose binary has the same bytes (triton/runtime/cache.py and
 * knobs.py of Triton 3.9 name the folders).
 */
#include "shim/cuda/jit_kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_MOST = 4096, NAME_MOST = 256, DEVICES_MOST = 16 };
#define TEXT_MOST ((off_t)64 << 20)

/* The whole of a file, one byte more than it has; NULL: it is not there, or is not of `size` bytes (0: any). */
static char *read_whole(int folder, const char *path, uint64_t size, size_t *bytes)
{
    struct stat st;
    const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    char *all = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= TEXT_MOST &&
        (size == 0 || (uint64_t)st.st_size == size))
        all = malloc((size_t)st.st_size + 1);
    for (*bytes = 0; all != NULL && *bytes < (size_t)st.st_size;) {
        const ssize_t n = read(fd, all + *bytes, (size_t)st.st_size - *bytes);
        if (n <= 0) {
            free(all);
            all = NULL;
        } else {
            *bytes += (size_t)n;
        }
    }
    if (fd >= 0)
        close(fd);
    return all;
}

/* The folders where a cache may be; false: there is no such. */
enum place { OF_TRITON, OF_DEVICE, OF_HOME = OF_DEVICE + DEVICES_MOST, PLACES };

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static bool folder_at(char path[PATH_MOST], unsigned place)
{
    const char *own = variable("TRITON_CACHE_DIR"), *inductor = variable("TORCHINDUCTOR_CACHE_DIR");
    const char *home = variable("TRITON_HOME") ? variable("TRITON_HOME") : variable("HOME");
    int n = PATH_MOST;
    if (place == OF_TRITON && own != NULL)
        n = snprintf(path, PATH_MOST, "%s", own);
    else if (place >= OF_DEVICE && place < OF_HOME && inductor != NULL)
        n = snprintf(path, PATH_MOST, "%s/triton/%u", inductor, place - OF_DEVICE);
    else if (place == OF_HOME && home != NULL)
        n = snprintf(path, PATH_MOST, "%s/.triton/cache", home);
    return n > 0 && n < PATH_MOST;
}

/* The text in one folder of the cache, if the binary there is the image. */
static char *text_in(int cache, const char *folder, const struct vg_image *image, const char *name, size_t *bytes)
{
    char path[PATH_MOST];
    if (snprintf(path, sizeof path, "%s/%s.cubin", folder, name) >= PATH_MOST)
        return NULL;
    char *binary = read_whole(cache, path, image->bytes, bytes);
    const bool same = binary != NULL && memcmp(binary, image->data, *bytes) == 0;
    free(binary);
    if (!same || snprintf(path, sizeof path, "%s/%s.ptx", folder, name) >= PATH_MOST)
        return NULL;
    return read_whole(cache, path, 0, bytes);
}

/* The same, of a kernel whose own name goes on behind that of its function, which is the files': _matmul_ogs of _matmul_ogs_NNT_bf16. */
static char *text_of_function_in(int cache, const char *folder, const struct vg_image *image, const char *name,
                                 size_t *bytes)
{
    char function[NAME_MOST], *text = NULL;
    const int at = openat(cache, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = at >= 0 ? fdopendir(at) : NULL;
    for (const struct dirent *e; files != NULL && text == NULL && (e = readdir(files)) != NULL;) {
        const char *end = strstr(e->d_name, ".cubin");
        const size_t length = end != NULL ? (size_t)(end - e->d_name) : 0;
        if (length == 0 || length >= sizeof function || strncmp(e->d_name, name, length) != 0)
            continue;
        memcpy(function, e->d_name, length);
        function[length] = '\0';
        text = text_in(cache, folder, image, function, bytes);
    }
    if (files != NULL)
        closedir(files);
    else if (at >= 0)
        close(at);
    return text;
}

static char *text_under(const char *path, const struct vg_image *image, const char *name, size_t *bytes)
{
    char *text = NULL;
    DIR *cache = opendir(path);
    for (const struct dirent *e; cache != NULL && text == NULL && (e = readdir(cache)) != NULL;)
        if (e->d_name[0] != '.')
            text = text_in(dirfd(cache), e->d_name, image, name, bytes);
    if (cache != NULL)
        rewinddir(cache);
    for (const struct dirent *e; cache != NULL && text == NULL && (e = readdir(cache)) != NULL;)
        if (e->d_name[0] != '.')
            text = text_of_function_in(dirfd(cache), e->d_name, image, name, bytes);
    if (cache != NULL)
        closedir(cache);
    return text;
}

char *vg_triton_text(const struct vg_image *image, const char *name, size_t *bytes)
{
    char path[PATH_MOST], *text = NULL;
    for (unsigned place = 0; place < PLACES && text == NULL; place++)
        if (folder_at(path, place))
            text = text_under(path, image, name, bytes);
    return text;
}
