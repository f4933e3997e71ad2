/*
 * launcher.h - is a program one that starts the ranks of a job? maquette does that itself, and two of them would not
 * agree on who is who.
 */
#ifndef MAQ_LAUNCH_LAUNCHER_H
#define MAQ_LAUNCH_LAUNCHER_H

/* The launcher that arguments (NULL-terminated, the program first) call: "torchrun", "mpirun", ...; NULL = none that is known. */
const char *maq_launcher_of(const char *const *arguments);

#endif
