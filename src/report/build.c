/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - what this library was built from. */
#include "maq_build.h"
#include "maquette/report.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown compiler"
#endif

const char *maq_version(void)
{
    return MAQ_VERSION;
}

const char *maq_build_commit(void)
{
    return MAQ_BUILD_COMMIT;
}

const char *maq_build_compiler(void)
{
    return COMPILER;
}
