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
/* The function of the C library that stands behind ours; the caller knows its type. */
typedef void vg_function(void);
vg_function *vg_behind(void **kept, const char *name);

#endif
