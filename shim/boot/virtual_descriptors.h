/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_descriptors.h - descriptors of the host program behind which nobody real may be.
 */
#ifndef MAQ_SHIM_BOOT_VIRTUAL_DESCRIPTORS_H
#define MAQ_SHIM_BOOT_VIRTUAL_DESCRIPTORS_H

enum { VG_FDS = 1 << 17 }; /* descriptors that may be virtual: below */

/* A new stream socket, also where a program was allowed less than the most descriptors. -1: errno says why. */
int vg_new_socket(int flags);
/* This descriptor is in use for nobody real: where it is near the most that the program was allowed, it is allowed more, if that may be. */
void vg_allow_descriptors(int fd);

#endif
