/*
 * host.h - what the files of libmaquette-clock.so share.
 */
#ifndef MAQ_SHIM_BOOT_HOST_H
#define MAQ_SHIM_BOOT_HOST_H

#include "shim/boot/hooks.h"

/* The device beside us under a run card; NULL: there is none, and the host is as it is. */
const struct vg_hooks *vg_device_beside(void);
/* The value of a key of the run card that only this library reads, in `out`; false: not there. */
bool vg_card_word(char *out, size_t room, const char *key);
/* The functions of the C library that stand behind ours; the caller knows their types. Found when the library is loaded: a
 * first write() may come from a signal's handler. */
/* clang-format off */
#define VG_BEHIND_LIST(X)                                                                                              \
    X(clock_gettime) X(nanosleep) X(clock_nanosleep) X(poll) X(ppoll) X(select) X(pthread_cond_clockwait)              \
    X(gethostname) X(uname) X(getaddrinfo)                                                                             \
    X(accept4) X(connect) X(send) X(recv) X(write) X(writev) X(read) X(close)
/* clang-format on */
enum vg_behind_id {
#define VG_BEHIND_ENUM(name) VG_BEHIND_##name,
    VG_BEHIND_LIST(VG_BEHIND_ENUM)
#undef VG_BEHIND_ENUM
        VG_BEHIND_COUNT
};
typedef void vg_function(void);
vg_function *vg_behind(enum vg_behind_id id);

#endif
