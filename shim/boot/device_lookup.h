/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_lookup.h - what libmaquette-clock.so knows of the run: the device that is loaded beside it, and words of the run card.
 */
#ifndef MAQ_SHIM_BOOT_DEVICE_LOOKUP_H
#define MAQ_SHIM_BOOT_DEVICE_LOOKUP_H

#include "shim/boot/hooks.h"

/* The device beside us under a run card; NULL: there is none, and the host is as it is. */
const struct vg_hooks *vg_device_beside(void);
/* The value of a key of the run card that only this library reads, in `out`; false: not there. */
bool vg_card_word(char *out, size_t room, const char *key);

#endif
