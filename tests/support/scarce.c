/* Memory and threads that are refused on demand, for a process that preloads this library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

long countdown; /* allocations until the one that fails; 0: none will */
static size_t too_large = SIZE_MAX; /* from so many bytes on they fail */
static int threads_refused = -1;    /* -1: none is */

void fail_from(size_t bytes) { too_large = bytes; }
void refuse_threads(void) { threads_refused = 0; }
int refused_threads(void) { return threads_refused; }

static int fails(size_t bytes)
{
    int now = bytes >= too_large || (countdown > 0 && --countdown == 0);
    if (now)
        errno = ENOMEM;
    return now;
}

void *malloc(size_t bytes) { return fails(bytes) ? NULL : __libc_malloc(bytes); }

void *calloc(size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all) || fails(all))
        return NULL;
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) { return fails(bytes) ? NULL : __libc_realloc(old, bytes); }

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(bytes) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = fails(bytes) ? NULL : __libc_memalign(alignment, bytes);
    return *block ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (fails(bytes))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

int pthread_create(pthread_t *made, const pthread_attr_t *how, void *(*work)(void *), void *of)
{
    int (*own)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (threads_refused >= 0) {
        threads_refused++;
        return EAGAIN;
    }
    *(void **)&own = dlsym(RTLD_NEXT, "pthread_create");
    return own(made, how, work, of);
}
