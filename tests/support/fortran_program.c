/* Calls functions of `support.fortran_functions` from C. */
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[8192];

static dlfield_array array_of(void *address, int rank, int64_t extent)
{
    dlfield_array array = {address, DLFIELD_FLOAT64, rank, {0}, {0}, {0}};
    int axis;
    int64_t stride = 8;
    for (axis = 0; axis < rank; axis++) {
        array.extent[axis] = extent;
        array.stride[axis] = stride;
        stride *= extent;
    }
    return array;
}

int main(int count, char **arguments)
{
    double x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, by = 2;
    const char *name = count > 1 ? arguments[1] : "";
    dlfield_array array = array_of(x, 1, 4);
    int status;
    size_t size = sizeof text;
    if (strcmp(name, "rank") == 0)
        array = array_of(x, 2, 2);
    if (strcmp(name, "type") == 0)
        array.type = DLFIELD_FLOAT32;
    if (strcmp(name, "negative") == 0)
        array.extent[0] = -1;
    if (strcmp(name, "address") == 0)
        array.address = NULL;
    if (strcmp(name, "large") == 0)
        array.extent[0] = INT64_MAX / 4;
    if (strcmp(name, "stride") == 0)
        array.stride[0] = 12;
    if (strcmp(name, "misaligned") == 0)
        array.address = (char *)x + 1;
    if (strcmp(name, "short") == 0)
        size = 12, array.rank = 3;
    status = model_add(strcmp(name, "absent") == 0 ? NULL : &array, strcmp(name, "default") == 0 ? NULL : &by,
                       strcmp(name, "no message") == 0 ? NULL : text, size);
    if (strcmp(name, "no message") == 0)
        status = model_fail(&array, "raise", NULL, 0);
    printf("values %g %g\nstatus %d\n%s\n", x[0], x[4], status, text);
    return 0;
}
