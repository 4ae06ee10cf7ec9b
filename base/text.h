/* Text that grows: printers append to one of these, callers own the string. Not thread safe. */
#ifndef BW_BASE_TEXT_H
#define BW_BASE_TEXT_H

#include <stddef.h>

struct bw_text {
    char *data; /* NUL terminated once anything was appended, else NULL */
    size_t length, capacity;
    int failed; /* -ENOMEM once, then nothing more is appended */
};

void bw_text_add(struct bw_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bw_text_add_bytes(struct bw_text *text, const char *data, size_t length);
/* The string, never NULL. */
const char *bw_text_string(const struct bw_text *text);
void bw_text_free(struct bw_text *text);

#endif
