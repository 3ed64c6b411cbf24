/* Which kernels this machine bears, and which of them to use. */
#include "config.h"

#include "engine/kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

#if defined(HAVE_DOTPROD) && defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(HAVE_AVX2) || defined(HAVE_AVX512)
#include <cpuid.h>

/* Registers that the system saves when it switches threads (XCR0). */
static unsigned saved_state(void)
{
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return a;
}
#endif

#ifdef HAVE_AVX2
static bool has_avx2(void)
{
    const unsigned ymm = 0x6; /* SSE and AVX state */
    unsigned a, b, c, d;

    if ((saved_state() & ymm) != ymm || !__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_FMA) ||
        !(c & bit_F16C))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}
#endif

#ifdef HAVE_AVX512
static bool has_avx512(void)
{
    const unsigned zmm = 0xE6; /* and opmasks, and both halves of the ZMM file */
    const unsigned need = bit_AVX512F | bit_AVX512BW | bit_AVX512VL;
    unsigned a, b, c, d;

    if (!has_avx2() || (saved_state() & zmm) != zmm || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return false;
    return (b & need) == need && (c & bit_AVX512VNNI);
}
#endif

#ifdef HAVE_DOTPROD
static bool has_dotprod(void)
{
#ifdef __linux__
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__ARM_FEATURE_DOTPROD) /* nobody to ask: what this build needs anyway */
    return true;
#else
    return false;
#endif
}
#endif

/* Of the scalar kernels, and of NEON on AArch64. */
static bool has_all(void)
{
    return true;
}

#if defined(HAVE_AVX512)
#define NAMES "avx512, avx2, scalar"
#elif defined(HAVE_AVX2)
#define NAMES "avx2, scalar"
#elif defined(HAVE_DOTPROD)
#define NAMES "dotprod, neon, scalar"
#elif defined(HAVE_NEON)
#define NAMES "neon, scalar"
#else
#define NAMES "scalar"
#endif

/* Best first. */
static const struct {
    const struct kernels *kernels;
    bool (*is_borne)(void);
} sets[] = {
#ifdef HAVE_AVX512
    {&kernels_avx512, has_avx512},
#endif
#ifdef HAVE_AVX2
    {&kernels_avx2, has_avx2},
#endif
#ifdef HAVE_DOTPROD
    {&kernels_dotprod, has_dotprod},
#endif
#ifdef HAVE_NEON
    {&kernels_neon, has_all},
#endif
    {&kernels_scalar, has_all},
};

/* Asked once: CPUID is slow in a virtual machine, and every frame of the desk names the kernels. */
static bool is_borne(size_t set)
{
    enum { UNKNOWN, YES, NO };
    static atomic_int known[sizeof sets / sizeof *sets];

    if (atomic_load(&known[set]) == UNKNOWN)
        atomic_store(&known[set], sets[set].is_borne() ? YES : NO);
    return atomic_load(&known[set]) == YES;
}

const struct kernels *kernels_choose(struct error *err)
{
    const char *wanted = getenv("FADER_KERNELS");
    bool any = wanted == NULL || *wanted == '\0';

    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (!any && strcmp(wanted, sets[i].kernels->name) != 0)
            continue;
        if (is_borne(i))
            return sets[i].kernels;
        if (!any) {
            error_set(err, "FADER_KERNELS=%s: this computer does not have these instructions",
                      wanted);
            return NULL;
        }
    }
    error_set(err, "FADER_KERNELS=%s: not one of the kernel sets of this build: " NAMES, wanted);
    return NULL;
}

const char *engine_kernels(void)
{
    struct error err;
    const struct kernels *k = kernels_choose(&err);

    return k != NULL ? k->name : "none";
}
