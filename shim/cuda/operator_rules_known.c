/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator_rules_known.c - kernels that say in their arguments which operator they are.
 *
 * Names are mangled; the digits before one are its length, which keeps a kernel apart from others that end alike. Where arguments lie is
 * from the declarations in the sources, and was looked at in launches: vLLM 0.33.0 (csrc), FlashAttention-2 (struct Flash_fwd_params),
 * FlashAttention-3 (struct Params of its main loop for Hopper and of its tile scheduler, as vLLM 0.33.0 is compiled), CUTLASS 3
 * (struct Params of its GemmUniversal kernels for sm90, tma_warpspecialized and _pingpong), DeepGEMM (sm90_fp8_gemm_1d2d.cuh, as vLLM 0.33.0 has
 * it), TensorRT-LLM's (fp8_gemm_impl.cuh, as FlashInfer 0.7.2 has it), FlashInfer (norm.cuh, as sglang-kernel 0.4.10 has it),
 * PyTorch 2.14.0 (its folder ATen/native/cuda).
 */
#include "shim/cuda/operator_rules.h"

/*
 * A structure of FlashAttention-2 in its arguments: queries begin where cu_seqlens_q says, or there are seqlen_q of each sequence; keys are
 * seqused_k, or between two of cu_seqlens_k, or seqlen_k. Of sequences that decode the heads that share keys may have been made queries:
 * seqlenq_ngroups_swapped, behind a generator's state of 32 bytes in vLLM's (472 bytes in all) and of 24 in others'.
 */
#define SWAPPED "(s0==472?a0@465.u8:s0==464?a0@457.u8:0)"
#define FLASH2_SIZES                                                                                                   \
    "batch=a0@176.i32 heads=" SWAPPED "?a0@96.i32*a0@180.i32:a0@96.i32 kv_heads=a0@100.i32 dim=a0@192.i32 "            \
    "queries=" SWAPPED "?1:a0@224.i64?a0@224.i32[i+1]-a0@224.i32[i]:a0@180.i32 "                                       \
    "keys=a0@248.i64?a0@248.i32[i]:a0@232.i64?a0@232.i32[i+1]-a0@232.i32[i]:a0@184.i32 "                               \
    "window=a0@388.i32<0?0:a0@388.i32+1 causal=a0@392.i32==0 flash2=1"

const char *const vg_operator_rules_known[] = {
    /* FlashAttention-3: shape_Q at 8 is queries, numbers of a head, heads; cu_seqlens_q and seqused_k are at 1904 and 1936; window_size_left
     * is at 1884. The scheduler's parameters have the same cu_seqlens_q, sequences and the heads that share keys. */
    "operator 16FlashAttnFwdSm90 attention if=s0==2688&&a0@1904.i64==a0@2536.i64&&a0@1904.i64!=0&&a0@1936.i64!=0 "
    "batch=a0@2492.i32 "
    "heads=a0@16.i32 kv_heads=a0@16.i32/a0@2496.i32 dim=a0@12.i32 queries=a0@1904.i32[i+1]-a0@1904.i32[i] "
    "keys=a0@1936.i32[i] "
    "window=a0@1884.i32+1",
    /* The same with values of another width, as latent attention has them where its keys are expanded: keys begin at 1912, and values' width is the
     * output's at 2060; and absorbed, with one key for all heads, whose latent is a second query (width at 312) and the value as well: cu_seqlens_q
     * and seqused_k at 2152 and 2184 */
    "operator 16FlashAttnFwdSm90 attention if=s0==2560&&a0@1904.i64==a0@2496.i64&&a0@1904.i64!=0&&a0@1912.i64!=0 "
    "batch=a0@2452.i32 heads=a0@16.i32 kv_heads=a0@16.i32/a0@2456.i32 dim=a0@12.i32 "
    "queries=a0@1904.i32[i+1]-a0@1904.i32[i] keys=a0@1912.i32[i+1]-a0@1912.i32[i] v_dim=a0@2060.i32",
    "operator 16FlashAttnFwdSm90 attention if=s0==2944&&a0@2152.i64==a0@2792.i64&&a0@2152.i64!=0&&a0@2184.i64!=0 "
    "batch=a0@2748.i32 heads=a0@16.i32 kv_heads=a0@16.i32/a0@2752.i32 dim=a0@12.i32+a0@312.i32 "
    "queries=a0@2152.i32[i+1]-a0@2152.i32[i] keys=a0@2184.i32[i] v_dim=a0@312.i32",
    "operator 19FlashAttnFwdCombine part",
    /* FlashAttention-2, its own, vLLM's and PyTorch's */
    "operator 16flash_fwd_kernelI/1 attention " FLASH2_SIZES,
    "operator 24flash_fwd_splitkv_kernelI/1 attention " FLASH2_SIZES,
    "operator 32flash_fwd_splitkv_combine_kernelI part",
    "operator 44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI/1 attention_bwd " FLASH2_SIZES,
    "operator 25flash_bwd_dot_do_o_kernelI part",
    "operator 27flash_bwd_convert_dq_kernelI part",
    /* PyTorch's memory-efficient attention, xFormers' by CUTLASS: struct Params of its two kernels, as PyTorch 2.15 has them
     * (ATen/native/transformers/cuda/mem_eff_attention), with a block for each head of each sequence along y and z. It is of the first
     * FlashAttention's time, and taken to be as fast */
    "operator 22PyTorchMemEffAttention15AttentionKernelI/1 attention if=s0==272||s0==280 batch=gz heads=gy "
    "kv_heads=gy/a0@208.i32 dim=a0@96.i32 v_dim=a0@100.i32 "
    "queries=a0@32.i64?a0@32.i32[i+1]-a0@32.i32[i]:a0@104.i32 keys=a0@40.i64?a0@40.i32[i+1]-a0@40.i32[i]:a0@108.i32 "
    "window=a0@88.i32 causal=a0@116.u8!=0 flash1=1",
    "operator 22PyTorchMemEffAttention23AttentionBackwardKernelI/1 attention_bwd if=s0>=464&&s0<=480 batch=gz "
    "heads=a0@160.i32 "
    "kv_heads=a0@160.i32/a0@164.i32 dim=a0@144.i32 v_dim=a0@148.i32 "
    "queries=a0@64.i64?a0@64.i32[i+1]-a0@64.i32[i]:a0@152.i32 keys=a0@72.i64?a0@72.i32[i+1]-a0@72.i32[i]:a0@156.i32 "
    "window=a0@136.i32 causal=a0@168.u8!=0 flash1=1",
    /* vLLM. Heads are those of keys, and two tensors are written */
    "operator 4vllm30reshape_and_cache_flash_kernelI/16 elementwise elements=2*gx*a10*a11 read=e written=e",
    "operator 4vllm27concat_and_cache_mla_kernelI/12 elementwise elements=gx*(a8+a9) read=e written=e",
    /* with the addition of the residual in front of it: two tensors are read, and two written */
    "operator 4vllm25fused_add_rms_norm_kernelI/8 elementwise elements=a5*a6 read=2*e written=2*e",
    "operator 4vllm15rms_norm_kernelI/12 norm rows=a10 columns=a11",
    "operator 4vllm23rotary_embedding_kernelI/13 rope rows=gx columns=(a8+a9)*a4",
    "operator 4vllm18act_and_mul_kernelI/6 gated_activation rows=gx columns=a2",
    /* vLLM's products of 8 bits by CUTLASS 3 for Hopper: the problem's shape, behind a mode but for the schedule that is not persistent; the
     * last word of the name says whether rows and columns were exchanged */
    "operator 36KernelTmaWarpSpecializedFP8FastAccumENS_8epilogue18TmaWarpSpecializedELb1EE10GemmKernel/1 gemm "
    "if=a0@0.i32>0 rows=a0@4.i32 columns=a0@0.i32 depth=a0@8.i32",
    "operator 36KernelTmaWarpSpecializedFP8FastAccumENS_8epilogue18TmaWarpSpecializedELb0EE10GemmKernel/1 gemm "
    "if=a0@0.i32>0 rows=a0@0.i32 columns=a0@4.i32 depth=a0@8.i32",
    "operator 4vllm24cutlass_3x_gemm_sm90_fp8I/1 gemm if=a0@0.i32==0 rows=a0@4.i32 columns=a0@8.i32 depth=a0@12.i32 "
    "batch=a0@16.i32",
    /* DeepGEMM's, and TensorRT-LLM's of the same origin with the operands exchanged, which FlashInfer has: rows and depth of the weights are in the
     * name, rows of the input are behind two pointers */
    "operator 23sm90_fp8_gemm_1d2d_implI/9 gemm_fp8_blocks if=t3==1 rows=a2 columns=t1>0?t1:a3 depth=t2>0?t2:a4",
    "operator 22fp8_gemm_kernel_swapABI/7 gemm_fp8_blocks if=t5==1 rows=a2@0.i32 columns=t0 depth=t1",
    /* and what makes their inputs: groups of as many numbers as the name says, whose scales lie in columns and rows */
    "operator 42per_token_group_quant_8bit_register_kernelI/9 quantize_fp8 "
    "rows=a7*a8==a3?a8:a3 columns=(a7*a8==a3?a7:1)*t0",
    "operator 4vllm49dynamic_per_token_scaled_fp8_quant_kernel_stridedI/7 quantize_fp8 rows=gx columns=a4",
    "operator 18scale_1x128_kernelI/5 quantize_fp8 rows=a4 columns=a3",
    /* vLLM's experts in Triton, one of their two products: rows and columns of the weights and how many rows all experts have together are its first
     * numbers, behind as many pointers as there are scales and lists. How many experts there are is how often one's weights lie in their memory */
    "operator fused_moe_kernel grouped_gemm_bf16 if=s6==8&&s7==4 rows=a10 columns=a7 depth=a8 groups=m1/(a7*a8*2)",
    "operator fused_moe_kernel grouped_gemm_bf16 if=s5==8&&s6==4 rows=a9 columns=a6 depth=a7 groups=m1/(a6*a7*2)",
    "operator fused_moe_kernel grouped_gemm_fp8 if=s8==8&&s9==4 rows=a12 columns=a9 depth=a10 groups=m1/(a9*a10)",
    "operator fused_moe_kernel grouped_gemm_fp8 if=s7==8&&s8==4 rows=a11 columns=a8 depth=a9 groups=m1/(a8*a9)",
    /* FlashInfer's norms, which sglang-kernel has in it: a block a row, and its width behind three pointers */
    "operator 10flashinfer4norm13RMSNormKernelI/8 norm rows=gx columns=a3",
    "operator 10flashinfer4norm21FusedAddRMSNormKernelI/8 elementwise elements=gx*a3 read=2*e written=2*e",
    /* PyTorch's softmax: a block a row, which it goes over as often as its registers or shared memory do not hold it; from the library's side it is
     * read once. Layer and RMS norms: rows are blocks */
    "operator cunn_SoftMaxForward/3 softmax rows=gx columns=a2",
    "operator cunn_SoftMaxForwardReg/3 softmax rows=gx columns=a2",
    "operator cunn_SoftMaxBackward/4 elementwise elements=gx*a3 read=2*e written=e",
    "operator 21softmax_warp_backwardI/7 elementwise elements=a3*a5 read=2*e written=e",
    "operator 28vectorized_layer_norm_kernelI/8 norm rows=gx columns=a0",
    "operator 39layer_norm_grad_input_kernel_vectorizedI/7 elementwise elements=gx*a6 read=2*e written=e",
    "operator 35GammaBetaBackwardCUDAKernelTemplateI/8 elementwise elements=a0*a1 read=2*e written=0",
    /* rows of a table, by bytes */
    "operator 6native24vectorized_gather_kernelI/9 embedding rows=a3 columns=a4/4 table=a5",
    NULL,
};
