/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_objects.c - the objects that libmpi.so.40 exports, element types and reductions.
 *
 * In a host program: MPI_COMM_WORLD, MPI_INT, MPI_SUM and their like.
 *
 * A program names them by address and never looks inside; only their sizes matter (abi/mpi.h).
 */
#include <stdlib.h>
#include <string.h>

#include "shim/boot/mpi.h"

#define OBJECT(name, bytes)                                                                                            \
    VG_EXPORT extern char name[bytes];                                                                                 \
    char name[bytes]

OBJECT(ompi_mpi_comm_world, VG_MPI_COMM_BYTES);
OBJECT(ompi_mpi_comm_self, VG_MPI_COMM_BYTES);
OBJECT(ompi_mpi_comm_null, VG_MPI_COMM_BYTES);
OBJECT(ompi_mpi_errhandler_null, VG_MPI_ERRHANDLER_BYTES);
OBJECT(ompi_mpi_errors_are_fatal, VG_MPI_ERRHANDLER_BYTES);
OBJECT(ompi_mpi_errors_return, VG_MPI_ERRHANDLER_BYTES);
OBJECT(ompi_mpi_errors_throw_exceptions, VG_MPI_ERRHANDLER_BYTES);
OBJECT(ompi_mpi_group_null, VG_MPI_SMALL_BYTES);
OBJECT(ompi_mpi_group_empty, VG_MPI_SMALL_BYTES);
OBJECT(ompi_mpi_info_null, VG_MPI_SMALL_BYTES);
OBJECT(ompi_mpi_info_env, VG_MPI_SMALL_BYTES);
OBJECT(ompi_request_null, VG_MPI_SMALL_BYTES);
OBJECT(ompi_message_null, VG_MPI_SMALL_BYTES);
OBJECT(ompi_message_no_proc, VG_MPI_SMALL_BYTES);
OBJECT(ompi_mpi_win_null, VG_MPI_WIN_BYTES);
OBJECT(ompi_mpi_file_null, VG_MPI_FILE_BYTES);

#define TYPE_OBJECT(name, bytes, number) OBJECT(ompi_mpi_##name, VG_MPI_TYPE_BYTES);
VG_MPI_TYPES(TYPE_OBJECT)
#define OP_OBJECT(name) OBJECT(ompi_mpi_op_##name, VG_MPI_OP_BYTES);
VG_MPI_OPS(OP_OBJECT)

/* --- types ------------------------------------------------------------------------------------------------------------ */

/* One that the program made: equal elements one behind the other. */
struct made {
    uint64_t magic;
    struct vg_mpi_type type;
};
#define MADE UINT64_C(0x6d7069747970652e)

bool vg_mpi_type_of(struct vg_mpi_type *out, const void *handle)
{
    static const struct {
        const char *object;
        struct vg_mpi_type type;
    } types[] = {
#define TYPE_ROW(name, bytes, number) {ompi_mpi_##name, {bytes, number}},
        VG_MPI_TYPES(TYPE_ROW)};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (handle == types[i].object) {
            *out = types[i].type;
            return true;
        }
    const struct made *made = handle;
    if (!made || made->magic != MADE)
        return false;
    *out = made->type;
    return true;
}

MPI_API(int, MPI_Type_contiguous, int count, void *old, void **out);
int MPI_Type_contiguous(int count, void *old, void **out)
{
    struct vg_mpi_type type;
    if (count < 0 || !out || !vg_mpi_type_of(&type, old))
        return vg_mpi_error("MPI_Type_contiguous", VG_MPI_ERR_TYPE);
    struct made *made = malloc(sizeof *made);
    if (!made)
        return VG_MPI_ERR_NO_MEM;
    *made = (struct made){.magic = MADE, .type = {.bytes = type.bytes * (uint64_t)count, .number = VG_MPI_OPAQUE}};
    *out = made;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Type_commit, void **type);
int MPI_Type_commit(void **type)
{
    return type ? VG_MPI_SUCCESS : VG_MPI_ERR_TYPE;
}

MPI_API(int, MPI_Type_free, void **type);
int MPI_Type_free(void **type)
{
    struct made *made = type ? *type : NULL;
    if (!made || made->magic != MADE)
        return vg_mpi_error("MPI_Type_free", VG_MPI_ERR_TYPE);
    made->magic = 0;
    free(made);
    *type = ompi_mpi_datatype_null;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Type_size, void *type, int *out);
int MPI_Type_size(void *type, int *out)
{
    struct vg_mpi_type t;
    if (!out || !vg_mpi_type_of(&t, type))
        return vg_mpi_error("MPI_Type_size", VG_MPI_ERR_TYPE);
    *out = (int)t.bytes;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Get_count, const struct vg_mpi_status *status, void *type, int *out);
int MPI_Get_count(const struct vg_mpi_status *status, void *type, int *out)
{
    struct vg_mpi_type t;
    if (!status || !out || !vg_mpi_type_of(&t, type))
        return vg_mpi_error("MPI_Get_count", VG_MPI_ERR_TYPE);
    *out = t.bytes && status->bytes % t.bytes == 0 ? (int)(status->bytes / t.bytes) : VG_MPI_UNDEFINED;
    return VG_MPI_SUCCESS;
}

/* --- reductions ------------------------------------------------------------------------------------------------------- */

static bool nccl_op(unsigned *out, const void *op)
{
    const void *const ops[] = {ompi_mpi_op_sum, ompi_mpi_op_prod, ompi_mpi_op_max, ompi_mpi_op_min};
    for (unsigned i = 0; i < 4; i++)
        if (op == ops[i]) {
            *out = i; /* in the order of enum vg_nccl_op */
            return true;
        }
    return false;
}

/* Of one, four or eight bytes; two-byte integers go through four. */
static void arithmetic(void *acc, const void *x, uint64_t count, struct vg_mpi_type type, unsigned op)
{
    bool is_signed = type.number == VG_MPI_SIGNED;
    unsigned code = type.number == VG_MPI_REAL ? (type.bytes == 4 ? MAQ_REC_F32 : MAQ_REC_F64)
                    : type.bytes == 1          ? (is_signed ? MAQ_REC_I8 : MAQ_REC_U8)
                    : type.bytes == 8          ? (is_signed ? MAQ_REC_I64 : MAQ_REC_U64)
                                               : (is_signed ? MAQ_REC_I32 : MAQ_REC_U32);
    if (type.bytes != 2) {
        vg_reduce(acc, x, count, code, op);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        int16_t a, b;
        memcpy(&a, (char *)acc + 2 * i, 2);
        memcpy(&b, (const char *)x + 2 * i, 2);
        int32_t wide = is_signed ? a : (uint16_t)a, other = is_signed ? b : (uint16_t)b;
        vg_reduce(&wide, &other, 1, MAQ_REC_I32, op);
        memcpy((char *)acc + 2 * i, &wide, 2);
    }
}

static uint64_t bitwise(uint64_t a, uint64_t b, const void *op)
{
    if (op == ompi_mpi_op_band)
        return a & b;
    if (op == ompi_mpi_op_bor)
        return a | b;
    if (op == ompi_mpi_op_bxor)
        return a ^ b;
    if (op == ompi_mpi_op_land)
        return a && b;
    return op == ompi_mpi_op_lor ? a || b : !a != !b;
}

bool vg_mpi_reduce(void *acc, const void *x, uint64_t count, struct vg_mpi_type type, const void *op)
{
    unsigned known;
    if (type.number == VG_MPI_OPAQUE)
        return false;
    if (nccl_op(&known, op)) {
        arithmetic(acc, x, count, type, known);
        return true;
    }
    const void *const ops[] = {ompi_mpi_op_band, ompi_mpi_op_bor, ompi_mpi_op_bxor,
                               ompi_mpi_op_land, ompi_mpi_op_lor, ompi_mpi_op_lxor};
    bool found = false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        found = found || op == ops[i];
    for (uint64_t i = 0; i < count && found && type.number != VG_MPI_REAL; i++) {
        uint64_t a = 0, b = 0;
        memcpy(&a, (char *)acc + i * type.bytes, type.bytes);
        memcpy(&b, (const char *)x + i * type.bytes, type.bytes);
        a = bitwise(a, b, op);
        memcpy((char *)acc + i * type.bytes, &a, type.bytes);
    }
    return found && type.number != VG_MPI_REAL;
}
