/* SPDX-License-Identifier: Apache-2.0 */
/* dnn.h - what the files of cuDNN share: the handle, descriptors of the backend API as bags of attributes. */
#ifndef MAQ_SHIM_MATH_DNN_H
#define MAQ_SHIM_MATH_DNN_H

#include "shim/abi/cudnn.h"
#include "shim/math/operator.h"

/* A handle; NULL when it is not one. */
struct dnn {
    uint64_t magic;
    void *stream;
};
struct dnn *dnn_of(void *handle);

/* Of cudnnDataType_t. */
enum maq_rec_type dnn_type(int data_type);
unsigned dnn_type_bits(int data_type);

/* One attribute: n elements of `width` bytes. Those that are descriptors are counted references. */
struct dnn_attribute {
    struct dnn_attribute *next;
    int name, type;
    int64_t n;
    void *value;
};

enum { DNN_REACHES = 32 }; /* tensors of a plan that are kept: attention backwards has fewer than 20 */
struct dnn_descriptor {
    uint64_t magic;
    int kind; /* enum abi_cudnn_descriptor */
    int references;
    bool finalized;
    struct dnn_attribute *attributes;
    /* An execution plan that is final: what it is. */
    struct dnn_plan {
        struct maq_rec_op op;
        char name[64];
        /* Its tensors in memory, and how many bytes from the first element of each to the end of the last. */
        struct dnn_reach {
            int64_t uid;
            uint64_t bytes;
        } tensor[DNN_REACHES];
        unsigned n_tensors; /* DNN_REACHES: there may be more */
    } plan;
};

/* A descriptor with one reference; NULL when out of memory. */
struct dnn_descriptor *dnn_new(int kind);
/* Gives a reference back: with the last one goes the descriptor. NULL is none. */
void dnn_release(struct dnn_descriptor *d);
/* What a program hands in; NULL when it is no descriptor. */
struct dnn_descriptor *dnn_descriptor_of(void *p);

/* Bytes of an element of a cudnnBackendAttributeType_t. */
size_t dnn_width(int type);
/* Sets an attribute to n elements, in place of what it was. A status of cuDNN. */
int dnn_set(struct dnn_descriptor *d, int name, int type, int64_t n, const void *values);
/* Without attributes, as it was made. */
void dnn_clear(struct dnn_descriptor *d);
const struct dnn_attribute *dnn_find(const struct dnn_descriptor *d, int name);
/* The i-th descriptor under a name; NULL. */
struct dnn_descriptor *dnn_child(const struct dnn_descriptor *d, int name, int64_t i);
/* The first number under a name. */
int64_t dnn_number(const struct dnn_descriptor *d, int name, int64_t otherwise);

/* What the graph of operations under a plan is. */
void dnn_recognize(const struct dnn_descriptor *graph, struct dnn_plan *plan);

#endif
