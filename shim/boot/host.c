/*
 * host.c - the names of hosts, by the node rule: rank r lives on node r / per_node, and that is called node00000, node00001,
 * ... Addresses of such names are this machine's.
 */
#include "shim/boot/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#pragma weak maquette_vgpu_hooks

const struct vg_hooks *vg_device_beside(void)
{
    const struct vg_hooks *hooks = &maquette_vgpu_hooks;
    return hooks && hooks->card()->there ? hooks : NULL;
}

static void *behind[VG_BEHIND_COUNT];

static void *find(enum vg_behind_id id)
{
    static const char *const names[] = {
#define VG_BEHIND_NAME(name) #name,
        VG_BEHIND_LIST(VG_BEHIND_NAME)};
    void *found = dlsym(RTLD_NEXT, names[id]);
    __atomic_store_n(&behind[id], found, __ATOMIC_RELAXED);
    return found;
}

__attribute__((constructor)) static void find_all(void)
{
    for (unsigned id = 0; id < VG_BEHIND_COUNT; id++)
        (void)find((enum vg_behind_id)id);
}

vg_function *vg_behind(enum vg_behind_id id)
{
    void *found = __atomic_load_n(&behind[id], __ATOMIC_RELAXED);
    if (!found) /* another library's constructor was before ours */
        found = find(id);
    vg_function *function;
    memcpy(&function, &found, sizeof function); /* dlsym() gives functions as objects */
    return function;
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
            (void)close(fd);
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

/* --- names ------------------------------------------------------------------------------------------------------------ */

#define NAME_BYTES 16

static bool own_name(char *out)
{
    const struct vg_hooks *device = vg_device_beside();
    if (device)
        device->host_name(out, device->card()->rank / device->card()->per_node);
    return device != NULL;
}

VG_EXPORT int gethostname(char *name, size_t room)
{
    char own[NAME_BYTES];
    if (!own_name(own))
        return ((int (*)(char *, size_t))vg_behind(VG_BEHIND_gethostname))(name, room);
    if (strlen(own) >= room) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, own, strlen(own) + 1);
    return 0;
}

VG_EXPORT int uname(struct utsname *out)
{
    char own[NAME_BYTES];
    int result = ((int (*)(struct utsname *))vg_behind(VG_BEHIND_uname))(out);
    if (result == 0 && own_name(own))
        memcpy(out->nodename, own, strlen(own) + 1);
    return result;
}

static bool is_node(const char *name)
{
    return name && strncmp(name, "node", 4) == 0 && strlen(name) >= 9 &&
           strspn(name + 4, "0123456789") == strlen(name + 4);
}

VG_EXPORT int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    if (is_node(name) && vg_device_beside())
        name = hints && hints->ai_family == AF_INET6 ? "::1" : "127.0.0.1";
    return ((int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))vg_behind(
        VG_BEHIND_getaddrinfo))(name, service, hints, out);
}
