/* NumPy arrays in .npy files. Source: numpy.lib.format, versions 1.0 to 3.0. */
#ifndef BW_COMPILER_IO_NPY_H
#define BW_COMPILER_IO_NPY_H

#include <bellwire/model.h>

/* Numbers become BW_VALUE_ARRAY (either byte order, C or Fortran order), 'S' and 'U' become BW_VALUE_STRINGS.
 * bf16 is what ml_dtypes writes: '<V2'. Storage types are bytes: '|u1' or '|i1' when written, '|V1' (what
 * ml_dtypes writes) is read as u8 too. -EBADMSG: damaged, says where; -ENOTSUP: structured and object
 * arrays, complex numbers, dates; -E2BIG: rank above BW_TENSOR_RANK_MAX. The value is the caller's
 * (bw_value_free). `name` stands in errors. */
int bw_npy_parse(const char *name, const uint8_t *data, uint64_t size_bytes, struct bw_value *value,
                 struct bw_err *err);
int bw_npy_read(const char *path, struct bw_value *value, struct bw_err *err);

/* Where the elements of an array of numbers lie, from the file's first bytes. */
struct bw_npy_layout {
    enum bw_dtype dtype;
    uint32_t rank;
    int64_t dims[BW_TENSOR_RANK_MAX];
    bool fortran_order;
    uint64_t offset, size_bytes; /* in the file */
};
/* The header has to end within the prefix: -E2BIG. Errors as above; -ENOTSUP for strings and for big-endian
 * numbers, too, which have to be read as a whole. */
int bw_npy_layout(const char *name, const uint8_t *prefix, uint64_t prefix_bytes, uint64_t file_bytes,
                  struct bw_npy_layout *layout, struct bw_err *err);

/* Writes an array or strings ('S', padded to the longest) as version 1.0, C order. -EINVAL: a sequence or an
 * empty optional; else as the file system says. A file is written whole or not at all (bw_file_write). */
int bw_npy_write(const char *path, const struct bw_value *value, struct bw_err *err);

#endif
