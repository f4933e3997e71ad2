/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit_kernel.h - kernels that were compiled while the program ran, and whose PTX lies beside them: what a launch does is read from that
 * (shim/ptx), and its record says so.
 */
#ifndef MAQ_SHIM_JIT_KERNEL_H
#define MAQ_SHIM_JIT_KERNEL_H

#include "shim/cuda/cuda.h"

/* What is kept of a kernel; owned by it. NULL: no memory. */
struct vg_jit *vg_jit_new(void);
/* What a launch does; NULL: that cannot be read. Good until the next look. All of these with the lock held. */
struct vg_jit_work;
const struct vg_jit_work *vg_jit_look(const struct vg_launch *launch);
/* Makes `op`, the record of a kernel, that of what the launch does; NULL: it stays. */
void vg_jit_apply(struct maq_rec_op *op, const struct vg_jit_work *work);
/* What the launch writes is no longer known; false: where that is cannot be told, and nothing is done. */
bool vg_jit_writes(const struct vg_jit_work *work, const struct vg_launch *launch);

/*
 * The PTX of a kernel whose binary is `image`: the text, owned, and *bytes. NULL: there is none. Triton keeps both in one folder of its cache, which
 * has a folder for each kernel and set of options, /HASH/NAME.cubin and NAME.ptx in
 *
 *     $TRITON_CACHE_DIR, $TORCHINDUCTOR_CACHE_DIR/triton/DEVICE, $TRITON_HOME/.triton/cache or ~/.triton/cache
 */
char *vg_triton_text(const struct vg_image *image, const char *name, size_t *bytes);

#endif
