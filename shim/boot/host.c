/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - the names of hosts, by the node rule: rank r lives on node r / per_node, and that is called node00000, node00001,
 * ... Addresses of such names are this machine's.
 *
 * In a host program: gethostname(), uname() and getaddrinfo(), with which launchers and NCCL tell nodes apart.
 */
#include <errno.h>
#include <string.h>

#include "shim/boot/device_lookup.h"
#include "shim/boot/libc.h"

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
        return vg_libc_gethostname(name, room);
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
    int result = vg_libc_uname(out);
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
    return vg_libc_getaddrinfo(name, service, hints, out);
}
