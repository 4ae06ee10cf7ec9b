/* Reading the objects that tests were built with. */
#ifndef BW_TESTS_OBJECTS_H
#define BW_TESTS_OBJECTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The whole file in malloc'ed memory; NULL when it cannot be read. */
static inline void *bw_test_file(const char *path, uint64_t *size_bytes)
{
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size >= 0 && fseek(file, 0, SEEK_SET) == 0)
        data = malloc((size_t)size + 1);
    if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
        free(data);
        data = NULL;
    }
    if (file)
        fclose(file);
    *size_bytes = data ? (uint64_t)size : 0;
    return data;
}

#endif
