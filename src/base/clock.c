#include "config.h"

#include "base/clock.h"

#include <time.h>

int64_t clock_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double clock_since_s(int64_t start)
{
    return (double)(clock_now_ns() - start) * 1e-9;
}
