/* Values in files: ONNX protobuf, NumPy arrays, pictures. */
#ifndef BW_COMPILER_IO_H
#define BW_COMPILER_IO_H

#include <stdbool.h>

#include <bellwire/model.h>

/* A TensorProto, SequenceProto or OptionalProto (`kind`: BW_VALUE_ARRAY or BW_VALUE_STRINGS,
 * BW_VALUE_SEQUENCE, BW_VALUE_NONE), as the ONNX tests keep them: 0 or what bw_model_load gives. The value is
 * the caller's (bw_value_free); `name`, that of the file, stands in errors. */
int bw_pb_parse(const char *name, const uint8_t *data, uint64_t size_bytes, enum bw_value_kind kind,
                struct bw_value *value, struct bw_err *err);
int bw_pb_read(const char *path, enum bw_value_kind kind, struct bw_value *value, struct bw_err *err);

/* Puts the file in front of what was found in it: of a long path its end, so that the finding stays whole. */
void bw_file_err_name(const char *path, struct bw_err *err);

/* Opens for reading, without ever waiting; the caller closes *fd. *size_bytes: of a regular file, 0 for a
 * pipe. -EISDIR, -EINVAL: neither a regular file nor (where pipes is set) a pipe, and what it is instead;
 * else as open(2). */
int bw_file_open(const char *path, bool pipes, int *fd, uint64_t *size_bytes, struct bw_err *err);

/* A whole regular file, or all that comes through a pipe, in memory (free). -EFBIG above size_bytes_max, or
 * above BW_PIPE_BYTES_MAX through a pipe; -ETIMEDOUT: a pipe that nobody writes to (2 s), or that brings no
 * byte for 30 s. */
int bw_file_read(const char *path, uint64_t size_bytes_max, uint8_t **data, uint64_t *size_bytes,
                 struct bw_err *err);

enum {
    BW_PIPE_BYTES_MAX = 1 << 30, /* nothing says how much comes: a bound for memory, above any one tensor */
    BW_WAIT_FOREVER_MS = -1,
};

/* How long a pipe may bring nothing; BW_WAIT_FOREVER_MS: as long as it likes. A regular file never waits. */
struct bw_pipe_waits {
    int writer_ms, byte_ms;
};

/* What is left to read of an open descriptor, which stays open. `name` stands in errors. */
int bw_fd_read(int fd, const char *name, uint64_t size_bytes_max, struct bw_pipe_waits waits, uint8_t **data,
               uint64_t *size_bytes, struct bw_err *err);

/* One stretch of what is written to a file. */
struct bw_file_piece {
    const void *data;
    uint64_t size_bytes;
};

/* poll(2) of one descriptor whose deadline holds however often signals interrupt it. The number of ready
 * descriptors, 0: none within wait_ms, -errno. */
int bw_fd_wait(int fd, short events, int wait_ms);

/* Writes a file whole or not at all: as one without a name that takes the name when it is whole, or, where
 * the file system has no such files, beside it first and then renamed. A failure leaves what was there; so
 * does a signal that ends the process, and nothing beside it. Held back meanwhile: all signals, for
 * microseconds, or (on such a file system) for as long as a mebibyte takes. What exists and is no regular
 * file (a device, a pipe with a reader) is written to as it is, and so is what a descriptor of this process
 * is redirected to, named by it (/dev/fd/N) or, of standard output and error, by any name: where it stands,
 * since others write there. 0 or -errno as the file system says; mode: of a new file, less the umask. This is
 * the one way in which the library and its program write files. */
int bw_file_put(const char *path, uint32_t mode, const struct bw_file_piece *pieces, uint32_t piece_count);

/* The descriptor that such a name means, where it is redirected to a regular file or a socket; else -1. */
int bw_file_redirection(const char *path);

/* bw_file_put, readable by all, with an error that names the path. */
int bw_file_write(const char *path, const struct bw_file_piece *pieces, uint32_t piece_count,
                  struct bw_err *err);

#endif
