/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_errors.c - what MPI's errors are called, and what comes of one: the end of the program, unless it has asked for errors back.
 *
 * In a host program: MPI_Error_string(), MPI_Abort() and error handlers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/boot/mpi.h"

static bool errors_return;

MPI_API(int, MPI_Error_string, int error, char *text, int *length);
int MPI_Error_string(int error, char *text, int *length)
{
    static const struct {
        int error;
        const char *text;
    } texts[] = {
        {VG_MPI_SUCCESS, "no error"},
        {VG_MPI_ERR_BUFFER, "invalid buffer"},
        {VG_MPI_ERR_COUNT, "invalid count"},
        {VG_MPI_ERR_TYPE, "invalid datatype"},
        {VG_MPI_ERR_TAG, "invalid tag"},
        {VG_MPI_ERR_COMM, "invalid communicator"},
        {VG_MPI_ERR_RANK, "invalid rank"},
        {VG_MPI_ERR_REQUEST, "invalid request"},
        {VG_MPI_ERR_ROOT, "invalid root"},
        {VG_MPI_ERR_OP, "invalid reduction"},
        {VG_MPI_ERR_ARG, "invalid argument"},
        {VG_MPI_ERR_TRUNCATE, "message longer than the buffer"},
        {VG_MPI_ERR_OTHER, "a peer failed"},
        {VG_MPI_ERR_NO_MEM, "out of memory"},
        {VG_MPI_ERR_UNSUPPORTED, "not supported by the zero-GPU device's MPI"},
    };
    const char *found = "unknown error";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == error)
            found = texts[i].text;
    if (text)
        memcpy(text, found, strlen(found) + 1);
    if (length)
        *length = (int)strlen(found);
    return VG_MPI_SUCCESS;
}

int vg_mpi_error(const char *call, int error)
{
    if (errors_return || error == VG_MPI_SUCCESS)
        return error;
    char text[VG_MPI_ERROR_MOST];
    (void)MPI_Error_string(error, text, NULL);
    fprintf(stderr, "maquette: %s: %s (MPI's default is to end the program)\n", call, text);
    exit(error);
}

extern char ompi_mpi_errors_return[];

MPI_API(int, MPI_Comm_set_errhandler, void *comm, void *handler);
int MPI_Comm_set_errhandler(void *comm, void *handler)
{
    (void)comm;
    errors_return = handler == ompi_mpi_errors_return;
    return VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Errhandler_set, void *comm, void *handler);
int MPI_Errhandler_set(void *comm, void *handler)
{
    return MPI_Comm_set_errhandler(comm, handler);
}

MPI_API(int, MPI_Error_class, int error, int *out);
int MPI_Error_class(int error, int *out)
{
    *out = error;
    return VG_MPI_SUCCESS;
}
