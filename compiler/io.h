/* Values in files: ONNX protobuf, NumPy arrays, pictures. */
#ifndef BW_COMPILER_IO_H
#define BW_COMPILER_IO_H

#include <bellwire/model.h>

/* A TensorProto, SequenceProto or OptionalProto (`kind`: BW_VALUE_ARRAY or BW_VALUE_STRINGS,
 * BW_VALUE_SEQUENCE, BW_VALUE_NONE), as the ONNX tests keep them: 0 or what bw_model_load gives. The value is
 * the caller's (bw_value_free). */
int bw_pb_read(const char *path, enum bw_value_kind kind, struct bw_value *value, struct bw_err *err);

/* A whole regular file in memory (free). -EFBIG above size_bytes_max. */
int bw_file_read(const char *path, uint64_t size_bytes_max, uint8_t **data, uint64_t *size_bytes,
                 struct bw_err *err);

#endif
