/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_lookup.c - finds the device that is loaded beside libmaquette-clock.so, and reads the run card for what only this library asks of it.
 *
 * In a host program: its environment, that is whether maquette started it and how.
 */
#include "shim/boot/device_lookup.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/boot/libc.h"

#pragma weak maquette_vgpu_hooks

const struct vg_hooks *vg_device_beside(void)
{
    const struct vg_hooks *hooks = &maquette_vgpu_hooks;
    return hooks && hooks->card()->there ? hooks : NULL;
}

bool vg_card_word(char *out, size_t room, const char *key)
{
    static char text[16384];
    static ssize_t bytes = -1;
    const char *path = getenv(MAQ_RUN_CARD);
    if (bytes < 0 && path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
        if (fd >= 0)
            (void)vg_libc_close(fd);
        bytes = got < 0 ? 0 : got;
    }
    size_t length = strlen(key);
    for (const char *line = text; bytes > 0 && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, length) != 0 || line[length] != ' ')
            continue;
        const char *value = line + length + strspn(line + length, " ");
        size_t n = strcspn(value, "\n");
        if (n >= room)
            return false;
        memcpy(out, value, n);
        out[n] = '\0';
        return true;
    }
    return false;
}
