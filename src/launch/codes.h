/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - the diagnostics of running programs, 1680 to 1693 of the range in base/codes.h: stable, never reused. Same form as there.
 */
#ifndef MAQ_LAUNCH_CODES_H
#define MAQ_LAUNCH_CODES_H

#define MAQ_CODE_LIST_LAUNCH(X)                                                                                        \
    X(LAUNCH_OPTION, 1680, "ranks, nodes or a device that a program cannot be run as")                                 \
    X(LAUNCH_PROGRAM, 1681, "a program that cannot be started")                                                        \
    X(LAUNCH_LIBRARY, 1682, "the zero-GPU device is not where maquette looks for it")                                  \
    X(LAUNCH_FOLDER, 1683, "a folder or file of a run that cannot be made")                                            \
    X(LAUNCH_SOCKET, 1684, "a socket of a run that cannot be made")                                                    \
    X(LAUNCH_TIMEOUT, 1685, "a program that did not end in time, or was asked to stop")                                \
    X(LAUNCH_FAILED, 1686, "a program that failed while it was captured or emulated")                                  \
    X(LAUNCH_LIMIT, 1687, "what slices say to each other is damaged, or more than can be held")                        \
    X(LAUNCH_UNSTABLE, 1688, "slices that do not agree: what they exchange or do keeps changing")                      \
    X(LAUNCH_RESUME, 1689, "a work folder of another capture")                                                         \
    X(LAUNCH_GLOO, 1690, "gloo's ranks that are not there, and nobody to answer for them")                             \
    X(LAUNCH_STALLED, 1691, "a rank that waits for ranks which are not there, by means of its own")                    \
    X(LAUNCH_SUPPOSED, 1692, "a rank that failed and had read what ranks which did not run were taken to say")         \
    X(LAUNCH_PEER_FAILED, 1693, "ranks that ran at once and were ended since one of them had failed")

enum maq_launch_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_LAUNCH(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
