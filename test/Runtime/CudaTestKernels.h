// The kernels of CudaTestKernels.c as PTX, and one that needs Hopper's tensor copy engine.
#ifndef MOERT_TEST_RUNTIME_CUDATESTKERNELS_H
#define MOERT_TEST_RUNTIME_CUDATESTKERNELS_H

namespace moert::test {

inline constexpr char cudaTestKernels[] = R"ptx(
.version 7.0
.target sm_70
.address_size 64
.visible .entry double_weight(
 .param .u64 .ptr .global .align 1 double_weight_param_0,
 .param .u64 .ptr .global .align 1 double_weight_param_1,
 .param .u64 double_weight_param_2
)
{
 .reg .pred %p<3>;
 .reg .b32 %r<6>;
 .reg .b64 %rd<17>;
 mov.u32 %r1, %ctaid.x;
 ld.param.b64 %rd8, [double_weight_param_2];
 mul.wide.u32 %rd9, %r1, 8;
 add.s64 %rd10, %rd9, 8;
 min.s64 %rd2, %rd10, %rd8;
 mov.u32 %r2, %tid.x;
 cvt.u64.u32 %rd3, %r2;
 add.s64 %rd16, %rd9, %rd3;
 setp.ge.s64 %p1, %rd16, %rd2;
 @%p1 bra $L__BB0_3;
 ld.param.b64 %rd7, [double_weight_param_1];
 ld.param.b64 %rd6, [double_weight_param_0];
 cvt.u64.u32 %rd1, %r1;
 mov.u32 %r3, %ntid.x;
 cvt.u64.u32 %rd4, %r3;
 shl.b64 %rd11, %rd1, 5;
 shl.b64 %rd12, %rd3, 2;
 add.s64 %rd15, %rd11, %rd12;
 mul.wide.u32 %rd5, %r3, 4;
$L__BB0_2:
 .pragma "nounroll";
 add.s64 %rd13, %rd6, %rd15;
 ld.global.b32 %r4, [%rd13];
 add.rn.f32 %r5, %r4, %r4;
 add.s64 %rd14, %rd7, %rd15;
 st.global.b32 [%rd14], %r5;
 add.s64 %rd16, %rd16, %rd4;
 add.s64 %rd15, %rd15, %rd5;
 setp.lt.s64 %p2, %rd16, %rd2;
 @%p2 bra $L__BB0_2;
$L__BB0_3:
 ret;
}
.visible .entry append(
 .param .u64 .ptr .global .align 1 append_param_0,
 .param .u64 .ptr .global .align 1 append_param_1,
 .param .u64 .ptr .global .align 1 append_param_2,
 .param .u64 .ptr .global .align 1 append_param_3,
 .param .u64 .ptr .global .align 1 append_param_4,
 .param .u64 .ptr .global .align 1 append_param_5,
 .param .u64 append_param_6,
 .param .u64 append_param_7,
 .param .u64 append_param_8,
 .param .u64 append_param_9,
 .param .u64 append_param_10,
 .param .u64 append_param_11
)
{
 .reg .pred %p<2>;
 .reg .b32 %r<15>;
 .reg .b64 %rd<22>;
 mov.u32 %r1, %tid.x;
 setp.ne.b32 %p1, %r1, 0;
 @%p1 bra $L__BB1_2;
 ld.param.b64 %rd7, [append_param_10];
 ld.param.b64 %rd6, [append_param_5];
 ld.param.b64 %rd5, [append_param_4];
 ld.param.b64 %rd4, [append_param_3];
 ld.param.b64 %rd3, [append_param_2];
 ld.param.b64 %rd2, [append_param_1];
 ld.param.b64 %rd1, [append_param_0];
 mov.u32 %r2, %ctaid.x;
 mul.wide.u32 %rd8, %r2, 4;
 add.s64 %rd9, %rd2, %rd8;
 ld.global.b32 %r3, [%rd9];
 add.s64 %rd10, %rd3, %rd8;
 ld.global.s32 %rd11, [%rd10];
 mul.lo.s64 %rd12, %rd7, %rd11;
 shr.s32 %r4, %r3, 31;
 shr.u32 %r5, %r4, 30;
 add.s32 %r6, %r3, %r5;
 shr.s32 %r7, %r6, 2;
 shl.b64 %rd13, %rd12, 2;
 add.s64 %rd14, %rd4, %rd13;
 mul.wide.s32 %rd15, %r7, 4;
 add.s64 %rd16, %rd14, %rd15;
 ld.global.b32 %r8, [%rd16];
 add.s64 %rd17, %rd1, %rd8;
 ld.global.b32 %r9, [%rd17];
 mul.wide.s32 %rd18, %r9, 4;
 add.s64 %rd19, %rd5, %rd18;
 ld.global.b32 %r10, [%rd19];
 shl.b32 %r11, %r8, 2;
 and.b32 %r12, %r6, -4;
 sub.s32 %r13, %r3, %r12;
 add.s32 %r14, %r11, %r13;
 mul.wide.s32 %rd20, %r14, 4;
 add.s64 %rd21, %rd6, %rd20;
 st.global.b32 [%rd21], %r10;
$L__BB1_2:
 ret;
}
.visible .entry attend(
 .param .u64 .ptr .global .align 1 attend_param_0,
 .param .u64 .ptr .global .align 1 attend_param_1,
 .param .u64 .ptr .global .align 1 attend_param_2,
 .param .u64 .ptr .global .align 1 attend_param_3,
 .param .u64 .ptr .global .align 1 attend_param_4,
 .param .u64 attend_param_5,
 .param .u64 attend_param_6,
 .param .u64 attend_param_7,
 .param .u64 attend_param_8,
 .param .u64 attend_param_9,
 .param .u64 attend_param_10
)
{
 .reg .pred %p<4>;
 .reg .b32 %r<20>;
 .reg .b64 %rd<21>;
 mov.u32 %r3, %tid.x;
 setp.ne.b32 %p1, %r3, 0;
 @%p1 bra $L__BB2_5;
 ld.param.b64 %rd7, [attend_param_4];
 ld.param.b64 %rd3, [attend_param_0];
 mov.u32 %r4, %ctaid.x;
 cvt.u64.u32 %rd1, %r4;
 mul.wide.u32 %rd9, %r4, 4;
 add.s64 %rd10, %rd3, %rd9;
 ld.global.b32 %r1, [%rd10];
 setp.lt.s32 %p2, %r1, 0;
 mov.b32 %r18, 0f00000000;
 shl.b64 %rd20, %rd1, 2;
 @%p2 bra $L__BB2_4;
 ld.param.b64 %rd8, [attend_param_8];
 ld.param.b64 %rd6, [attend_param_3];
 ld.param.b64 %rd5, [attend_param_2];
 ld.param.b64 %rd4, [attend_param_1];
 add.s64 %rd11, %rd4, %rd20;
 ld.global.s32 %rd12, [%rd11];
 mul.lo.s64 %rd13, %rd8, %rd12;
 shl.b64 %rd14, %rd13, 2;
 add.s64 %rd2, %rd5, %rd14;
 add.s32 %r2, %r1, 1;
 mov.b32 %r19, 0;
 mov.b32 %r18, 0f00000000;
$L__BB2_3:
 .pragma "nounroll";
 mul.hi.u32 %r5, %r19, -1431655765;
 shr.u32 %r6, %r5, 1;
 mul.lo.s32 %r7, %r6, 3;
 and.b32 %r8, %r19, -4;
 cvt.u64.u32 %rd15, %r8;
 add.s64 %rd16, %rd2, %rd15;
 ld.global.b32 %r9, [%rd16];
 sub.s32 %r10, %r19, %r7;
 add.s32 %r11, %r10, 1;
 cvt.rn.f32.u32 %r12, %r11;
 shl.b32 %r13, %r9, 2;
 and.b32 %r14, %r19, 3;
 or.b32 %r15, %r13, %r14;
 mul.wide.s32 %rd17, %r15, 4;
 add.s64 %rd18, %rd6, %rd17;
 ld.global.b32 %r16, [%rd18];
 mul.rn.f32 %r17, %r16, %r12;
 add.rn.f32 %r18, %r18, %r17;
 add.s32 %r19, %r19, 1;
 setp.eq.b32 %p3, %r2, %r19;
 @%p3 bra $L__BB2_4;
 bra.uni $L__BB2_3;
$L__BB2_4:
 add.s64 %rd19, %rd7, %rd20;
 st.global.b32 [%rd19], %r18;
$L__BB2_5:
 ret;
}
.visible .entry recur(
 .param .u64 .ptr .global .align 1 recur_param_0,
 .param .u64 .ptr .global .align 1 recur_param_1,
 .param .u64 .ptr .global .align 1 recur_param_2,
 .param .u64 .ptr .global .align 1 recur_param_3,
 .param .u64 .ptr .global .align 1 recur_param_4,
 .param .u64 .ptr .global .align 1 recur_param_5,
 .param .u64 recur_param_6,
 .param .u64 recur_param_7,
 .param .u64 recur_param_8,
 .param .u64 recur_param_9
)
{
 .reg .pred %p<4>;
 .reg .b32 %r<18>;
 .reg .b64 %rd<18>;
 mov.u32 %r2, %tid.x;
 setp.ne.b32 %p1, %r2, 0;
 @%p1 bra $L__BB3_5;
 ld.param.b64 %rd7, [recur_param_4];
 ld.param.b64 %rd5, [recur_param_2];
 ld.param.b64 %rd4, [recur_param_1];
 mov.u32 %r3, %ctaid.x;
 mul.wide.u32 %rd9, %r3, 4;
 add.s64 %rd10, %rd5, %rd9;
 ld.global.b32 %r4, [%rd10];
 mul.wide.s32 %rd11, %r4, 4;
 add.s64 %rd1, %rd7, %rd11;
 ld.global.b32 %r17, [%rd1];
 add.s64 %rd12, %rd4, %rd9;
 ld.global.b32 %r5, [%rd12];
 ld.global.b32 %r1, [%rd12+4];
 setp.le.s32 %p2, %r1, %r5;
 @%p2 bra $L__BB3_4;
 ld.param.b64 %rd8, [recur_param_5];
 ld.param.b64 %rd6, [recur_param_3];
 ld.param.b64 %rd3, [recur_param_0];
 cvt.s64.s32 %rd2, %r5;
 cvt.u32.u64 %r6, %rd2;
 sub.s32 %r16, %r1, %r6;
 shl.b64 %rd13, %rd2, 2;
 add.s64 %rd17, %rd8, %rd13;
 add.s64 %rd16, %rd3, %rd13;
$L__BB3_3:
 .pragma "nounroll";
 cvt.rzi.s32.f32 %r7, %r17;
 shr.u32 %r8, %r7, 31;
 add.s32 %r9, %r7, %r8;
 shr.s32 %r10, %r9, 1;
 cvt.rn.f32.s32 %r11, %r10;
 ld.global.b32 %r12, [%rd16];
 mul.wide.s32 %rd14, %r12, 4;
 add.s64 %rd15, %rd6, %rd14;
 ld.global.b32 %r13, [%rd15];
 add.rn.f32 %r17, %r13, %r11;
 ld.global.b32 %r14, [%rd17];
 add.rn.f32 %r15, %r14, %r17;
 st.global.b32 [%rd17], %r15;
 add.s32 %r16, %r16, -1;
 add.s64 %rd17, %rd17, 4;
 add.s64 %rd16, %rd16, 4;
 setp.eq.b32 %p3, %r16, 0;
 @%p3 bra $L__BB3_4;
 bra.uni $L__BB3_3;
$L__BB3_4:
 st.global.b32 [%rd1], %r17;
$L__BB3_5:
 ret;
}
.visible .entry logits(
 .param .u64 .ptr .global .align 1 logits_param_0,
 .param .u64 .ptr .global .align 1 logits_param_1,
 .param .u64 .ptr .global .align 1 logits_param_2,
 .param .u64 logits_param_3,
 .param .u64 logits_param_4,
 .param .u64 logits_param_5,
 .param .u64 logits_param_6,
 .param .u64 .ptr .global .align 1 logits_param_7
)
{
 .reg .pred %p<4>;
 .reg .b32 %r<9>;
 .reg .b64 %rd<31>;
 ld.param.b64 %rd7, [logits_param_6];
 mov.u32 %r4, %tid.x;
 cvt.u64.u32 %rd30, %r4;
 setp.le.s64 %p1, %rd7, %rd30;
 @%p1 bra $L__BB4_4;
 ld.param.b64 %rd8, [logits_param_7];
 ld.param.b64 %rd6, [logits_param_2];
 ld.param.b64 %rd9, [logits_param_0];
 ld.param.b64 %rd10, [logits_param_1];
 mov.u32 %r1, %ctaid.x;
 cvt.u64.u32 %rd1, %r1;
 mul.wide.u32 %rd11, %r1, 4;
 add.s64 %rd12, %rd10, %rd11;
 ld.global.b32 %r2, [%rd12];
 mul.wide.s32 %rd13, %r2, 4;
 add.s64 %rd14, %rd9, %rd13;
 ld.global.b32 %r3, [%rd14];
 cvt.rzi.s64.f32 %rd2, %r3;
 mov.u32 %r5, %ntid.x;
 cvt.u64.u32 %rd3, %r5;
 mul.lo.s64 %rd15, %rd7, %rd1;
 shl.b64 %rd16, %rd15, 2;
 shl.b64 %rd17, %rd30, 2;
 add.s64 %rd29, %rd16, %rd17;
 add.s64 %rd27, %rd8, %rd29;
 mul.wide.u32 %rd4, %r5, 4;
 mul.lo.s64 %rd18, %rd30, 7;
 sub.s64 %rd26, %rd2, %rd18;
 mul.wide.u32 %rd5, %r5, 7;
 mov.b64 %rd28, %rd30;
$L__BB4_2:
 .pragma "nounroll";
 mul.lo.s64 %rd19, %rd26, %rd26;
 mul.hi.u64 %rd20, %rd19, -9086255505087856445;
 shr.u64 %rd21, %rd20, 9;
 mul.lo.s64 %rd22, %rd21, 1009;
 sub.s64 %rd23, %rd19, %rd22;
 st.global.b32 [%rd27], %rd23;
 add.s64 %rd28, %rd28, %rd3;
 add.s64 %rd27, %rd27, %rd4;
 sub.s64 %rd26, %rd26, %rd5;
 setp.lt.s64 %p2, %rd28, %rd7;
 @%p2 bra $L__BB4_2;
$L__BB4_3:
 .pragma "nounroll";
 add.s64 %rd24, %rd8, %rd29;
 ld.global.b32 %r6, [%rd24];
 cvt.rn.f32.s32 %r7, %r6;
 neg.f32 %r8, %r7;
 add.s64 %rd25, %rd6, %rd29;
 st.global.b32 [%rd25], %r8;
 add.s64 %rd30, %rd30, %rd3;
 add.s64 %rd29, %rd29, %rd4;
 setp.lt.s64 %p3, %rd30, %rd7;
 @%p3 bra $L__BB4_3;
$L__BB4_4:
 ret;
}
.visible .entry choose(
 .param .u64 .ptr .global .align 1 choose_param_0,
 .param .u64 .ptr .global .align 1 choose_param_1,
 .param .u64 .ptr .global .align 1 choose_param_2,
 .param .u64 .ptr .global .align 1 choose_param_3,
 .param .u64 .ptr .global .align 1 choose_param_4,
 .param .u64 .ptr .global .align 1 choose_param_5,
 .param .u64 .ptr .global .align 1 choose_param_6,
 .param .u64 choose_param_7,
 .param .u64 choose_param_8
)
{
 .reg .pred %p<6>;
 .reg .b32 %r<6>;
 .reg .b64 %rd<28>;
 mov.u32 %r1, %tid.x;
 setp.ne.b32 %p1, %r1, 0;
 @%p1 bra $L__BB11_7;
 ld.param.b64 %rd11, [choose_param_8];
 ld.param.b64 %rd8, [choose_param_2];
 mov.u32 %r2, %ctaid.x;
 cvt.u64.u32 %rd1, %r2;
 setp.lt.s64 %p2, %rd11, 2;
 mov.b64 %rd27, 0;
 @%p2 bra $L__BB11_4;
 ld.param.b64 %rd7, [choose_param_1];
 ld.param.b64 %rd6, [choose_param_0];
 mul.wide.u32 %rd12, %r2, 4;
 add.s64 %rd13, %rd7, %rd12;
 ld.global.s32 %rd14, [%rd13];
 mul.lo.s64 %rd2, %rd11, %rd14;
 shl.b64 %rd15, %rd2, 2;
 add.s64 %rd3, %rd6, %rd15;
 add.s64 %rd16, %rd15, %rd6;
 add.s64 %rd25, %rd16, 4;
 mov.b64 %rd27, 0;
 mov.b64 %rd26, 1;
$L__BB11_3:
 .pragma "nounroll";
 ld.global.b32 %r3, [%rd25];
 shl.b64 %rd17, %rd27, 2;
 add.s64 %rd18, %rd3, %rd17;
 ld.global.b32 %r4, [%rd18];
 setp.gt.f32 %p3, %r3, %r4;
 selp.b64 %rd27, %rd26, %rd27, %p3;
 add.s64 %rd26, %rd26, 1;
 add.s64 %rd25, %rd25, 4;
 setp.eq.b64 %p4, %rd11, %rd26;
 @%p4 bra $L__BB11_4;
 bra.uni $L__BB11_3;
$L__BB11_4:
 ld.param.b64 %rd10, [choose_param_6];
 shl.b64 %rd19, %rd1, 2;
 add.s64 %rd20, %rd8, %rd19;
 ld.global.b32 %r5, [%rd20];
 setp.neu.f32 %p5, %r5, 0f00000000;
 @%p5 bra $L__BB11_5;
 bra.uni $L__BB11_6;
$L__BB11_5:
 ld.param.b64 %rd9, [choose_param_5];
 cvt.rn.f64.s64 %rd4, %rd11;
 shl.b64 %rd21, %rd1, 3;
 add.s64 %rd5, %rd9, %rd21;
 ld.global.b64 %rd22, [%rd5];
 mul.rn.f64 %rd23, %rd22, %rd4;
 cvt.rzi.s64.f64 %rd27, %rd23;
$L__BB11_6:
 add.s64 %rd24, %rd10, %rd19;
 st.global.b32 [%rd24], %rd27;
$L__BB11_7:
 ret;
}
.visible .entry increment(
 .param .u64 .ptr .global .align 1 increment_param_0,
 .param .u64 .ptr .global .align 1 increment_param_1,
 .param .u64 increment_param_2,
 .param .u64 increment_param_3,
 .param .u64 increment_param_4,
 .param .u64 increment_param_5
)
{
 .reg .pred %p<3>;
 .reg .b32 %r<6>;
 .reg .b64 %rd<14>;
 mov.u32 %r1, %ctaid.x;
 cvt.u64.u32 %rd6, %r1;
 ld.param.b64 %rd7, [increment_param_3];
 mul.lo.s64 %rd8, %rd7, %rd6;
 mov.u32 %r2, %tid.x;
 cvt.u64.u32 %rd9, %r2;
 add.s64 %rd13, %rd8, %rd9;
 add.s64 %rd1, %rd8, %rd7;
 setp.ge.s64 %p1, %rd13, %rd1;
 @%p1 bra $L__BB5_3;
 ld.param.b64 %rd5, [increment_param_1];
 ld.param.b64 %rd4, [increment_param_0];
 mov.u32 %r3, %ntid.x;
 cvt.u64.u32 %rd2, %r3;
 shl.b64 %rd12, %rd13, 2;
 mul.wide.u32 %rd3, %r3, 4;
$L__BB5_2:
 .pragma "nounroll";
 add.s64 %rd10, %rd4, %rd12;
 ld.global.b32 %r4, [%rd10];
 add.rn.f32 %r5, %r4, 0f3F800000;
 add.s64 %rd11, %rd5, %rd12;
 st.global.b32 [%rd11], %r5;
 add.s64 %rd13, %rd13, %rd2;
 add.s64 %rd12, %rd12, %rd3;
 setp.lt.s64 %p2, %rd13, %rd1;
 @%p2 bra $L__BB5_2;
$L__BB5_3:
 ret;
}
.visible .entry add(
 .param .u64 .ptr .global .align 1 add_param_0,
 .param .u64 .ptr .global .align 1 add_param_1,
 .param .u64 .ptr .global .align 1 add_param_2,
 .param .u64 add_param_3
)
{
 .reg .pred %p<2>;
 .reg .b32 %r<7>;
 .reg .b64 %rd<12>;
 mov.u32 %r1, %ctaid.x;
 ld.param.b64 %rd7, [add_param_3];
 mov.u32 %r2, %ntid.x;
 mul.wide.u32 %rd8, %r1, %r2;
 mov.u32 %r3, %tid.x;
 cvt.u64.u32 %rd9, %r3;
 add.s64 %rd10, %rd8, %rd9;
 setp.ge.s64 %p1, %rd10, %rd7;
 @%p1 bra $L__BB6_2;
 ld.param.b64 %rd4, [add_param_0];
 ld.param.b64 %rd5, [add_param_1];
 ld.param.b64 %rd6, [add_param_2];
 shl.b64 %rd11, %rd10, 2;
 add.s64 %rd1, %rd6, %rd11;
 add.s64 %rd2, %rd5, %rd11;
 add.s64 %rd3, %rd4, %rd11;
 ld.global.b32 %r4, [%rd3];
 ld.global.b32 %r5, [%rd2];
 add.s32 %r6, %r5, %r4;
 st.global.b32 [%rd1], %r6;
$L__BB6_2:
 ret;
}
.visible .entry advance(
 .param .u64 .ptr .global .align 1 advance_param_0,
 .param .u64 advance_param_1
)
{
 .reg .pred %p<2>;
 .reg .b32 %r<6>;
 .reg .b64 %rd<8>;
 ld.param.b64 %rd3, [advance_param_1];
 mov.u32 %r1, %ctaid.x;
 mov.u32 %r2, %ntid.x;
 mul.wide.u32 %rd4, %r1, %r2;
 mov.u32 %r3, %tid.x;
 cvt.u64.u32 %rd5, %r3;
 add.s64 %rd6, %rd4, %rd5;
 setp.ge.s64 %p1, %rd6, %rd3;
 @%p1 bra $L__BB7_2;
 ld.param.b64 %rd2, [advance_param_0];
 shl.b64 %rd7, %rd6, 2;
 add.s64 %rd1, %rd2, %rd7;
 ld.global.b32 %r4, [%rd1];
 mad.lo.s32 %r5, %r4, 3, 1;
 st.global.b32 [%rd1], %r5;
$L__BB7_2:
 ret;
}
.visible .entry reverse(
 .param .u64 .ptr .global .align 1 reverse_param_0,
 .param .u64 .ptr .global .align 1 reverse_param_1,
 .param .u64 reverse_param_2,
 .param .u64 .ptr .global .align 1 reverse_param_3
)
{
 .reg .pred %p<2>;
 .reg .b32 %r<5>;
 .reg .b64 %rd<16>;
 ld.param.b64 %rd8, [reverse_param_3];
 ld.param.b64 %rd7, [reverse_param_2];
 mov.u32 %r1, %tid.x;
 cvt.u64.u32 %rd1, %r1;
 setp.le.s64 %p1, %rd7, %rd1;
 @%p1 bra $L__BB8_2;
 ld.param.b64 %rd9, [reverse_param_0];
 mul.wide.u32 %rd10, %r1, 4;
 add.s64 %rd2, %rd8, %rd10;
 add.s64 %rd3, %rd9, %rd10;
 ld.global.b32 %r2, [%rd3];
 shl.b32 %r3, %r2, 1;
 st.global.b32 [%rd2], %r3;
$L__BB8_2:
 bar.sync 0;
 @%p1 bra $L__BB8_4;
 ld.param.b64 %rd6, [reverse_param_1];
 shl.b64 %rd11, %rd1, 2;
 add.s64 %rd4, %rd6, %rd11;
 shl.b64 %rd12, %rd7, 2;
 add.s64 %rd13, %rd8, %rd12;
 not.b64 %rd14, %rd1;
 shl.b64 %rd15, %rd14, 2;
 add.s64 %rd5, %rd13, %rd15;
 ld.global.b32 %r4, [%rd5];
 st.global.b32 [%rd4], %r4;
$L__BB8_4:
 ret;
}
.visible .entry number(
 .param .u64 .ptr .global .align 1 number_param_0,
 .param .u64 number_param_1,
 .param .u64 number_param_2
)
{
 .reg .pred %p<2>;
 .reg .b32 %r<4>;
 .reg .b64 %rd<8>;
 mov.u32 %r2, %tid.x;
 setp.ne.b32 %p1, %r2, 0;
 @%p1 bra $L__BB9_2;
 ld.param.b64 %rd2, [number_param_0];
 ld.param.b64 %rd3, [number_param_1];
 ld.param.b64 %rd4, [number_param_2];
 mov.u32 %r3, %ctaid.x;
 cvt.u64.u32 %rd5, %r3;
 mul.wide.u32 %rd6, %r3, 4;
 add.s64 %rd1, %rd2, %rd6;
 mad.lo.s64 %rd7, %rd4, %rd5, %rd3;
 cvt.u32.u64 %r1, %rd7;
 st.global.b32 [%rd1], %r1;
$L__BB9_2:
 ret;
}
.visible .entry fail(
 .param .u64 .ptr .global .align 1 fail_param_0
)
{
 .reg .b64 %rd<2>;
 mov.b64 %rd1, 16;
 st.volatile.global.b32 [%rd1], 1;
 ret;
}
)ptx";

// tiles: source i32 [8, columns], result i32 [workgroups, 8, 16]. Workgroup w copies columns 16 w to
// 16 w + 15 through a tensor map with boxes of 16 x 8; 128 threads.
inline constexpr char tensorMapTestKernel[] = R"ptx(
.version 8.0
.target sm_90
.address_size 64
.visible .entry tiles(
 .param .u64 source,
 .param .u64 result,
 .param .align 64 .b8 map[128]
)
{
 .reg .pred %p<3>;
 .reg .b32 %r<9>;
 .reg .b64 %rd<5>;
 .shared .align 128 .b8 tile[512];
 .shared .align 8 .b64 barrier;
 mov.u32 %r1, %tid.x;
 mov.u32 %r2, %ctaid.x;
 mov.u32 %r3, tile;
 mov.u32 %r4, barrier;
 setp.ne.u32 %p1, %r1, 0;
 @%p1 bra TOGETHER;
 mbarrier.init.shared.b64 [%r4], 1;
 fence.mbarrier_init.release.cluster;
 mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r4], 512;
 shl.b32 %r5, %r2, 4;
 mov.u32 %r6, 0;
 mov.b64 %rd2, map;
 cvta.param.u64 %rd2, %rd2;
 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd2, {%r5, %r6}], [%r4];
TOGETHER:
 bar.sync 0;
WAIT:
 mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;
 @!%p2 bra WAIT;
 shl.b32 %r7, %r1, 2;
 add.u32 %r7, %r7, %r3;
 ld.shared.b32 %r8, [%r7];
 ld.param.u64 %rd3, [result];
 mad.lo.u32 %r7, %r2, 128, %r1;
 mul.wide.u32 %rd4, %r7, 4;
 add.s64 %rd3, %rd3, %rd4;
 st.global.b32 [%rd3], %r8;
 ret;
}
)ptx";

} // namespace moert::test

#endif
