/* Kernels whose arguments are of every kind, for arguments_test.sh. */
#define ITEM (__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x())

__kernel void saxpy(float a, __global const float *x, __global float *y, int n)
{
    int i = ITEM;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

__kernel void turn(__global int *out, __local int *one, __local int *two)
{
    int item = __builtin_amdgcn_workitem_id_x(), last = __builtin_amdgcn_workgroup_size_x() - 1;
    one[item] = item;
    two[item] = 100 * item;
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
    __builtin_amdgcn_s_barrier();
    out[ITEM] = one[last - item] + two[last - item];
}

struct pair {
    int a;
    long b;
};

__kernel void structure(__global long *out, struct pair pair)
{
    out[0] = pair.a + pair.b;
}

__kernel void widths(__global double *out, double d, long l, short s, char c, uchar u)
{
    out[0] = d;
    out[1] = l;
    out[2] = s;
    out[3] = c;
    out[4] = u;
}
