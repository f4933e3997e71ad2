/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi/mpi.h - what programs that were compiled against Open MPI 4 pass and expect, in our own words.
 *
 * Handles are addresses: of objects that the library exports (MPI_COMM_WORLD is &ompi_mpi_comm_world) or of what it
 * made. Programs without position-independent code copy the exported ones into themselves, so their sizes are part of the ABI;
 * what is in them is not. Source: mpi.h and the dynamic symbols of Open MPI 4.1.4 (Debian 12); tests/abi/mpi_abi.c compares
 * the numbers with the real header where there is one.
 */
#ifndef MAQ_SHIM_ABI_MPI_H
#define MAQ_SHIM_ABI_MPI_H

#include <stddef.h>

enum {
    VG_MPI_COMM_BYTES = 512,
    VG_MPI_TYPE_BYTES = 512,
    VG_MPI_OP_BYTES = 2048,
    VG_MPI_ERRHANDLER_BYTES = 1024,
    VG_MPI_SMALL_BYTES = 256, /* groups, infos, requests, messages */
    VG_MPI_WIN_BYTES = 512,
    VG_MPI_FILE_BYTES = 1536
};

enum vg_mpi_result {
    VG_MPI_SUCCESS,
    VG_MPI_ERR_BUFFER,
    VG_MPI_ERR_COUNT,
    VG_MPI_ERR_TYPE,
    VG_MPI_ERR_TAG,
    VG_MPI_ERR_COMM,
    VG_MPI_ERR_RANK,
    VG_MPI_ERR_REQUEST,
    VG_MPI_ERR_ROOT,
    VG_MPI_ERR_GROUP,
    VG_MPI_ERR_OP,
    VG_MPI_ERR_ARG = 13,
    VG_MPI_ERR_TRUNCATE = 15,
    VG_MPI_ERR_OTHER = 16,
    VG_MPI_ERR_NO_MEM = 39,
    VG_MPI_ERR_UNSUPPORTED = 52
};

enum {
    VG_MPI_ANY = -1,       /* source, tag */
    VG_MPI_PROC_NULL = -2, /* a message to or from nobody */
    VG_MPI_UNDEFINED = -32766,
    VG_MPI_THREAD_MULTIPLE = 3,
    VG_MPI_TYPE_SHARED = 0, /* MPI_COMM_TYPE_SHARED: ranks of a node */
    VG_MPI_CONGRUENT = 1,   /* of comparing communicators; 0 = identical, 3 = unequal */
    VG_MPI_UNEQUAL = 3,
    VG_MPI_NAME_MOST = 256, /* MPI_MAX_PROCESSOR_NAME */
    VG_MPI_ERROR_MOST = 256,
    VG_MPI_TAG_MOST = 0x7fffffff
};

struct vg_mpi_status {
    int source, tag, error, cancelled;
    size_t bytes;
};

#define VG_MPI_IN_PLACE ((void *)1)

/* Element types: name, bytes, how reductions see it (enum vg_mpi_number). Only C's, and what stands for them in Fortran. */
enum vg_mpi_number { VG_MPI_OPAQUE, VG_MPI_SIGNED, VG_MPI_UNSIGNED, VG_MPI_REAL };
#define VG_MPI_TYPES(X)                                                                                                \
    X(byte, 1, VG_MPI_UNSIGNED)                                                                                        \
    X(packed, 1, VG_MPI_OPAQUE)                                                                                        \
    X(char, 1, VG_MPI_SIGNED)                                                                                          \
    X(signed_char, 1, VG_MPI_SIGNED)                                                                                   \
    X(unsigned_char, 1, VG_MPI_UNSIGNED)                                                                               \
    X(short, 2, VG_MPI_SIGNED)                                                                                         \
    X(unsigned_short, 2, VG_MPI_UNSIGNED)                                                                              \
    X(int, 4, VG_MPI_SIGNED)                                                                                           \
    X(unsigned, 4, VG_MPI_UNSIGNED)                                                                                    \
    X(long, 8, VG_MPI_SIGNED)                                                                                          \
    X(unsigned_long, 8, VG_MPI_UNSIGNED)                                                                               \
    X(long_long_int, 8, VG_MPI_SIGNED)                                                                                 \
    X(unsigned_long_long, 8, VG_MPI_UNSIGNED)                                                                          \
    X(int8_t, 1, VG_MPI_SIGNED)                                                                                        \
    X(uint8_t, 1, VG_MPI_UNSIGNED)                                                                                     \
    X(int16_t, 2, VG_MPI_SIGNED)                                                                                       \
    X(uint16_t, 2, VG_MPI_UNSIGNED)                                                                                    \
    X(int32_t, 4, VG_MPI_SIGNED)                                                                                       \
    X(uint32_t, 4, VG_MPI_UNSIGNED)                                                                                    \
    X(int64_t, 8, VG_MPI_SIGNED)                                                                                       \
    X(uint64_t, 8, VG_MPI_UNSIGNED)                                                                                    \
    X(aint, 8, VG_MPI_SIGNED)                                                                                          \
    X(offset, 8, VG_MPI_SIGNED)                                                                                        \
    X(count, 8, VG_MPI_SIGNED)                                                                                         \
    X(c_bool, 1, VG_MPI_UNSIGNED)                                                                                      \
    X(cxx_bool, 1, VG_MPI_UNSIGNED)                                                                                    \
    X(wchar, 4, VG_MPI_SIGNED)                                                                                         \
    X(float, 4, VG_MPI_REAL)                                                                                           \
    X(double, 8, VG_MPI_REAL)                                                                                          \
    X(long_double, 16, VG_MPI_OPAQUE)                                                                                  \
    X(c_complex, 8, VG_MPI_OPAQUE)                                                                                     \
    X(c_float_complex, 8, VG_MPI_OPAQUE)                                                                               \
    X(c_double_complex, 16, VG_MPI_OPAQUE)                                                                             \
    X(c_long_double_complex, 32, VG_MPI_OPAQUE)                                                                        \
    X(cxx_cplex, 8, VG_MPI_OPAQUE)                                                                                     \
    X(cxx_dblcplex, 16, VG_MPI_OPAQUE)                                                                                 \
    X(cxx_ldblcplex, 32, VG_MPI_OPAQUE)                                                                                \
    X(float_int, 8, VG_MPI_OPAQUE)                                                                                     \
    X(double_int, 12, VG_MPI_OPAQUE)                                                                                   \
    X(longdbl_int, 20, VG_MPI_OPAQUE)                                                                                  \
    X(long_int, 12, VG_MPI_OPAQUE)                                                                                     \
    X(short_int, 6, VG_MPI_OPAQUE)                                                                                     \
    X(2int, 8, VG_MPI_OPAQUE)                                                                                          \
    X(character, 1, VG_MPI_OPAQUE)                                                                                     \
    X(logical, 4, VG_MPI_SIGNED)                                                                                       \
    X(integer, 4, VG_MPI_SIGNED)                                                                                       \
    X(real, 4, VG_MPI_REAL)                                                                                            \
    X(dblprec, 8, VG_MPI_REAL)                                                                                         \
    X(cplex, 8, VG_MPI_OPAQUE)                                                                                         \
    X(dblcplex, 16, VG_MPI_OPAQUE)                                                                                     \
    X(datatype_null, 0, VG_MPI_OPAQUE)                                                                                 \
    X(lb, 0, VG_MPI_OPAQUE)                                                                                            \
    X(ub, 0, VG_MPI_OPAQUE)

#define VG_MPI_OPS(X)                                                                                                  \
    X(null)                                                                                                            \
    X(max) X(min) X(sum) X(prod) X(land) X(band) X(lor) X(bor) X(lxor) X(bxor) X(maxloc) X(minloc) X(replace) X(no_op)

#endif
