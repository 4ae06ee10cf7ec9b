/* What every kernel of the corpus starts from. No OpenCL library is linked and no standard header included: builtins of
 * clang only, so that a kernel is what clang makes of it alone.
 *
 * Files that include only this and use no __builtin_amdgcn_* also compile for the host (OpenCL C, any target): there the
 * caller defines the functions below, and the same source gives the expected values. */
#ifndef BW_TESTS_CORPUS_H
#define BW_TESTS_CORPUS_H

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define CORPUS_VECTORS(type)                                                                                           \
    typedef type type##2 __attribute__((ext_vector_type(2)));                                                          \
    typedef type type##3 __attribute__((ext_vector_type(3)));                                                          \
    typedef type type##4 __attribute__((ext_vector_type(4)));                                                          \
    typedef type type##8 __attribute__((ext_vector_type(8)));                                                          \
    typedef type type##16 __attribute__((ext_vector_type(16)))

CORPUS_VECTORS(char);
CORPUS_VECTORS(uchar);
CORPUS_VECTORS(short);
CORPUS_VECTORS(ushort);
CORPUS_VECTORS(int);
CORPUS_VECTORS(uint);
CORPUS_VECTORS(long);
CORPUS_VECTORS(ulong);
CORPUS_VECTORS(half);
CORPUS_VECTORS(float);
CORPUS_VECTORS(double);

#define NOINLINE static __attribute__((noinline))

enum { GROUP = 64 }; /* work-items of a workgroup, one dimension */

#ifdef __AMDGCN__
static inline uint local_index(void)
{
    return __builtin_amdgcn_workitem_id_x();
}

static inline uint group_index(void)
{
    return __builtin_amdgcn_workgroup_id_x();
}

static inline void group_barrier(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#else
uint local_index(void);
uint group_index(void);
void group_barrier(void);
#define KERNEL __kernel
#endif

static inline uint global_index(void)
{
    return group_index() * GROUP + local_index();
}

#endif
