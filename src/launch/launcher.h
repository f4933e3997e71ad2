/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launcher.h - recognises programs that start the ranks of a job themselves (torchrun, mpirun, ...): maquette does
 * that, and two launchers would assign ranks twice.
 */
#ifndef MAQ_LAUNCH_LAUNCHER_H
#define MAQ_LAUNCH_LAUNCHER_H

/* The launcher in a command line (NULL-terminated, the program first): "torchrun", "mpirun", ...; NULL = no known one. */
const char *maq_launcher_of(const char *const *arguments);

#endif
