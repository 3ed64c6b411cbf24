#include "config.h"

#include "engine/gguf_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "engine/mapguard.h"
#include "engine/quant.h"

enum {
    PARTS_MAX = 256,
    TENSORS_MAX = 1 << 20,
    TENSOR_NAME_MAX = 255,
    TENSOR_BYTES_MIN = 8 + 1 + 4 + 8 + 4 + 8, /* of its entry in the header */
    ALIGNMENT_DEFAULT = 32,
    ALIGNMENT_MIN = 8,
    ALIGNMENT_MAX = 1 << 16
};

struct part {           /* one file of the set */
    char *path;         /* owned */
    int fd;             /* -1: not open */
    const uint8_t *map; /* NULL: not mapped */
    size_t size;
    int guard; /* -1: not guarded */
    struct gguf_table table;
    uint64_t n_tensors;
    const uint8_t *data; /* where the tensors' bytes start */
};

struct gguf {
    struct part *parts; /* owned; [0] is the one with the model's keys */
    size_t n_parts, cap_parts;
    struct gguf_tensor *tensors; /* owned, in the files' order */
    size_t n_tensors, cap_tensors;
    struct gguf_tensor **by_name; /* owned, sorted */
};

/* ---- one file ------------------------------------------------------------------------------ */

static bool part_open(struct part *p, struct error *err)
{
    struct stat st;

    p->fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hang us */
    if (p->fd < 0 || fstat(p->fd, &st) != 0)
        return error_set_errno(err, errno, "%s", p->path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, "%s: not a regular file", p->path);
    if (st.st_size == 0)
        return error_set(err, "%s: the file is empty", p->path);
    if ((uintmax_t)st.st_size > SIZE_MAX)
        return error_set_errno(err, EFBIG, "%s", p->path);
    p->size = (size_t)st.st_size;
    void *map = mmap(NULL, p->size, PROT_READ, MAP_PRIVATE, p->fd, 0);
    if (map == MAP_FAILED)
        return error_set_errno(err, errno, "%s: cannot map the file", p->path);
    p->map = map;
    p->guard = mapguard_add(map, p->size);
    return p->guard >= 0 || error_set(err, "%s: too many files are open", p->path);
}

static void part_close(struct part *p)
{
    if (p->guard >= 0)
        mapguard_remove(p->guard);
    if (p->map != NULL)
        munmap((void *)p->map, p->size);
    if (p->fd >= 0)
        close(p->fd);
    gguf_table_done(&p->table);
    free(p->path);
}

static bool check_magic(const struct part *p, struct gguf_reader *r, struct error *err)
{
    static const char magic[4] = "GGUF", lfs[] = "version https://git-lfs";
    uint32_t version;

    if (p->size >= sizeof lfs && memcmp(p->map, lfs, sizeof lfs - 1) == 0)
        return error_set(err,
                         "%s: a Git LFS pointer, not the model itself: fetch it with"
                         " 'git lfs pull'",
                         p->path);
    if (p->size < sizeof magic || memcmp(p->map, magic, sizeof magic) != 0)
        return error_set(err, "%s: not a GGUF file", p->path);
    r->at += sizeof magic;
    if (!gguf_take_u32(r, &version))
        return error_set(err, "%s: cut off inside the header", p->path);
    if ((version & 0xFFFF) == 0 && version != 0)
        return error_set(err, "%s: big-endian files are not supported", p->path);
    if (version != 2 && version != 3)
        return error_set(err, "%s: GGUF version %" PRIu32 " is not supported (2 and 3 are)",
                         p->path, version);
    return true;
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* The name, as a C string behind the tensor table. */
static bool take_name(struct gguf_reader *r, char **name, const char *path, struct error *err)
{
    struct gguf_string s;

    if (!gguf_take_string(r, &s))
        return error_set(err, "%s: cut off inside a tensor's name", path);
    if (s.len == 0 || s.len > TENSOR_NAME_MAX || memchr(s.text, '\0', s.len) != NULL)
        return error_set(err, "%s: a tensor's name of %zu bytes", path, s.len);
    *name = mem_strndup(s.text, s.len);
    return true;
}

static bool take_dims(struct gguf_reader *r, struct gguf_tensor *t, const char *path,
                      struct error *err)
{
    if (!gguf_take_u32(r, &t->n_dims))
        return error_set(err, "%s: cut off inside tensor %s", path, t->name);
    if (t->n_dims < 1 || t->n_dims > GGUF_MAX_DIMS)
        return error_set(err, "%s: tensor %s: %" PRIu32 " dimensions", path, t->name, t->n_dims);
    t->n_elements = 1;
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) {
        t->dims[i] = 1;
        if (i < t->n_dims && !gguf_take_u64(r, &t->dims[i]))
            return error_set(err, "%s: cut off inside tensor %s", path, t->name);
        if (t->dims[i] == 0 || t->dims[i] > INT64_MAX ||
            __builtin_mul_overflow(t->n_elements, t->dims[i], &t->n_elements) ||
            t->n_elements > INT64_MAX)
            return error_set(err, "%s: tensor %s: dimension %" PRIu32 " is %" PRIu64, path, t->name,
                             i, t->dims[i]);
    }
    return true;
}

/* Bytes from the type's traits. An id that is not known has none: such a tensor cannot be used. */
static bool measure(struct gguf_tensor *t, const char *path, struct error *err)
{
    const struct quant_traits *traits = quant_find(t->type);

    if (traits == NULL)
        return true;
    if (t->dims[0] % traits->block_elements != 0)
        return error_set(err,
                         "%s: tensor %s: rows of %" PRIu64 " elements are not whole blocks of"
                         " %s",
                         path, t->name, t->dims[0], traits->name);
    if (__builtin_mul_overflow(t->n_elements / traits->block_elements,
                               (uint64_t)traits->block_bytes, &t->bytes))
        return error_set(err, "%s: tensor %s: too large", path, t->name);
    return true;
}

/* One entry of the header; its data pointer is the offset until place_tensors. */
static bool read_tensor(struct gguf_reader *r, struct gguf_tensor *t, const char *path,
                        struct error *err)
{
    uint64_t offset;
    char *name = NULL;

    if (!take_name(r, &name, path, err))
        return false;
    t->name = name;
    if (!take_dims(r, t, path, err))
        return false;
    if (!gguf_take_u32(r, &t->type) || !gguf_take_u64(r, &offset))
        return error_set(err, "%s: cut off inside tensor %s", path, t->name);
    if (offset > SIZE_MAX / 2)
        return error_set(err, "%s: tensor %s: its data goes beyond the end of the file", path,
                         t->name);
    t->data = (const void *)(uintptr_t)offset;
    return measure(t, path, err);
}

static bool read_tensors(struct gguf *g, struct part *p, struct gguf_reader *r, struct error *err)
{
    if (p->n_tensors > (uint64_t)(r->end - r->at) / TENSOR_BYTES_MIN ||
        p->n_tensors > TENSORS_MAX - g->n_tensors)
        return error_set(err, "%s: %" PRIu64 " tensors are more than such a file can hold", p->path,
                         p->n_tensors);
    mem_grow(&g->tensors, &g->cap_tensors, g->n_tensors + (size_t)p->n_tensors, sizeof *g->tensors);
    for (uint64_t i = 0; i < p->n_tensors; i++) {
        struct gguf_tensor *t = &g->tensors[g->n_tensors++];
        *t = (struct gguf_tensor){.part = (int)(p - g->parts)};
        if (!read_tensor(r, t, p->path, err))
            return false;
    }
    return true;
}

/* Turns the offsets of this part's tensors into pointers, all inside the file. */
static bool place_tensors(struct gguf *g, struct part *p, uint64_t alignment, struct error *err)
{
    size_t left = p->size - (size_t)(p->data - p->map);

    for (size_t i = g->n_tensors - (size_t)p->n_tensors; i < g->n_tensors; i++) {
        struct gguf_tensor *t = &g->tensors[i];
        uint64_t offset = (uintptr_t)t->data;
        if (offset % alignment != 0)
            return error_set(err,
                             "%s: tensor %s: its offset %" PRIu64 " is not a multiple of %" PRIu64,
                             p->path, t->name, offset, alignment);
        if (offset > left || t->bytes > left - offset)
            return error_set(err,
                             "%s: tensor %s: its data goes beyond the end of the file (is the"
                             " download complete?)",
                             p->path, t->name);
        t->data = p->data + offset;
    }
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct gguf_tensor *const *p = a, *const *q = b;

    return strcmp((*p)->name, (*q)->name);
}

static int compare_places(const void *a, const void *b)
{
    const struct gguf_tensor *const *p = a, *const *q = b;
    uintptr_t x = (uintptr_t)(*p)->data, y = (uintptr_t)(*q)->data;

    return (x > y) - (x < y);
}

/* No two tensors share bytes (else a small file could claim weights without end), nor a name. */
static bool index_tensors(struct gguf *g, struct error *err)
{
    struct gguf_tensor **index = mem_array(g->n_tensors, sizeof(struct gguf_tensor *));

    g->by_name = index;
    for (size_t i = 0; i < g->n_tensors; i++)
        index[i] = &g->tensors[i];
    qsort(index, g->n_tensors, sizeof(struct gguf_tensor *), compare_places);
    const struct gguf_tensor *before = NULL; /* the last that has bytes: of a known type */
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = index[i];
        if (t->bytes == 0)
            continue;
        if (before != NULL && (const char *)before->data + before->bytes > (const char *)t->data)
            return error_set(err, "%s: tensors %s and %s overlap", g->parts[t->part].path,
                             before->name, t->name);
        before = t;
    }
    qsort(index, g->n_tensors, sizeof(struct gguf_tensor *), compare_names);
    for (size_t i = 1; i < g->n_tensors; i++) {
        const struct gguf_tensor *one = index[i - 1], *other = index[i];
        if (strcmp(one->name, other->name) == 0)
            return error_set(err, "%s: tensor %s is there twice",
                             g->parts[one->part > other->part ? one->part : other->part].path,
                             one->name);
    }
    return true;
}

/* ---- a whole set --------------------------------------------------------------------------- */

static bool read_alignment(const struct part *p, int64_t *alignment, struct error *err)
{
    *alignment = ALIGNMENT_DEFAULT;
    if (!gguf_table_read_int(&p->table, p->path, "general.alignment", false, ALIGNMENT_MIN,
                             ALIGNMENT_MAX, alignment, err))
        return false;
    if ((*alignment & (*alignment - 1)) != 0)
        return error_set(err, "%s: key general.alignment: %" PRId64 " is not a power of two",
                         p->path, *alignment);
    return true;
}

/* Opens the file and reads its header, and adds its tensors to those of the set. */
static bool read_part(struct gguf *g, struct part *p, struct error *err)
{
    uint64_t n_keys;
    int64_t alignment;

    if (!part_open(p, err))
        return false;
    struct gguf_reader r = {p->map, p->map + p->size};
    if (!check_magic(p, &r, err))
        return false;
    if (!gguf_take_u64(&r, &p->n_tensors) || !gguf_take_u64(&r, &n_keys))
        return error_set(err, "%s: cut off inside the header", p->path);
    if (!gguf_table_read(&p->table, &r, n_keys, p->path, err) ||
        !read_alignment(p, &alignment, err) || !read_tensors(g, p, &r, err))
        return false;
    size_t used = (size_t)(r.at - p->map), align = (size_t)alignment;
    size_t start = (used + align - 1) & ~(align - 1);
    if (start > p->size) {
        if (p->n_tensors > 0)
            return error_set(err, "%s: cut off before the tensors' data", p->path);
        start = p->size;
    }
    p->data = p->map + start;
    return place_tensors(g, p, (uint64_t)alignment, err);
}

static struct part *add_part(struct gguf *g, char *path)
{
    mem_grow(&g->parts, &g->cap_parts, g->n_parts + 1, sizeof *g->parts);
    struct part *p = &g->parts[g->n_parts++];
    *p = (struct part){.path = path, .fd = -1, .guard = -1};
    return p;
}

/* NAME-00001-of-00003.gguf and 2 give NAME-00003-of-00003.gguf; NULL when it is not called so. */
static char *part_path(const char *first, int64_t i, int64_t n)
{
    struct str tail = STR_INIT, path = STR_INIT;
    size_t len = strlen(first);

    str_add_format(&tail, "-%05d-of-%05d.gguf", 1, (int)n);
    if (len > tail.len && strcmp(first + len - tail.len, str_text(&tail)) == 0) {
        str_add(&path, first, len - tail.len);
        str_add_format(&path, "-%05d-of-%05d.gguf", (int)i + 1, (int)n);
    }
    str_done(&tail);
    return path.len > 0 ? str_steal(&path) : NULL;
}

/* Which part of how many this file says it is. A file that is whole says nothing. */
static bool read_split(const struct part *p, int64_t *number, int64_t *count, struct error *err)
{
    *number = 0;
    *count = 1;
    return gguf_table_read_int(&p->table, p->path, "split.count", false, 0, PARTS_MAX, count,
                               err) &&
           gguf_table_read_int(&p->table, p->path, "split.no", false, 0, PARTS_MAX, number, err);
}

static bool read_others(struct gguf *g, struct error *err)
{
    int64_t number, count, other_number, other_count, total = -1;
    const char *first = g->parts[0].path;

    if (!read_split(&g->parts[0], &number, &count, err))
        return false;
    if (count < 2)
        return true;
    if (number != 0)
        return error_set(err, "%s: part %" PRId64 " of %" PRId64 ": open the first one", first,
                         number + 1, count);
    for (int64_t i = 1; i < count; i++) {
        char *path = part_path(first, i, count);
        if (path == NULL)
            return error_set(err,
                             "%s: the first of %" PRId64 " parts, but not called"
                             " NAME-00001-of-%05" PRId64 ".gguf",
                             first, count, count);
        struct part *p = add_part(g, path);
        if (!read_part(g, p, err) || !read_split(p, &other_number, &other_count, err))
            return false;
        if (other_number != i || other_count != count)
            return error_set(err, "%s: says that it is part %" PRId64 " of %" PRId64, path,
                             other_number + 1, other_count);
        first = g->parts[0].path;
    }
    if (!gguf_table_read_int(&g->parts[0].table, first, "split.tensors.count", false, 0,
                             TENSORS_MAX, &total, err))
        return false;
    if (total >= 0 && (size_t)total != g->n_tensors)
        return error_set(err, "%s: %" PRId64 " tensors announced, %zu found in %" PRId64 " parts",
                         first, total, g->n_tensors, count);
    return true;
}

struct gguf *gguf_open(const char *path, struct error *err)
{
    struct gguf *g = mem_zalloc(sizeof *g);

    add_part(g, mem_strdup(path));
    if (read_part(g, &g->parts[0], err) && read_others(g, err) && index_tensors(g, err) &&
        gguf_check_whole(g, err))
        return g;
    gguf_close(g);
    return NULL;
}

void gguf_close(struct gguf *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < g->n_tensors; i++)
        free((char *)g->tensors[i].name);
    for (size_t i = 0; i < g->n_parts; i++)
        part_close(&g->parts[i]);
    free(g->parts);
    free(g->tensors);
    free(g->by_name);
    free(g);
}

/* ---- looking ------------------------------------------------------------------------------- */

const char *gguf_path(const struct gguf *g)
{
    return g->parts[0].path;
}

const struct gguf_table *gguf_keys(const struct gguf *g)
{
    return &g->parts[0].table;
}

size_t gguf_n_tensors(const struct gguf *g)
{
    return g->n_tensors;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, size_t i)
{
    return &g->tensors[i];
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name)
{
    const struct gguf_tensor wanted = {.name = name}, *key = &wanted;
    struct gguf_tensor **found =
        bsearch(&key, g->by_name, g->n_tensors, sizeof(struct gguf_tensor *), compare_names);

    return found != NULL ? *found : NULL;
}

bool gguf_check_whole(const struct gguf *g, struct error *err)
{
    struct stat st;

    for (size_t i = 0; i < g->n_parts; i++) {
        const struct part *p = &g->parts[i];
        if (mapguard_is_damaged(p->guard) || fstat(p->fd, &st) != 0 ||
            (uintmax_t)st.st_size < p->size)
            return error_set(err, "%s: the file was cut short while it was in use", p->path);
    }
    return true;
}

bool gguf_is_damaged(const struct gguf *g)
{
    for (size_t i = 0; i < g->n_parts; i++) {
        if (mapguard_is_damaged(g->parts[i].guard))
            return true;
    }
    return false;
}

/* From `offset`, rounded down to `align` but not out of the file's map, to the last whole page. */
static void advise(const struct gguf *g, const struct gguf_tensor *t, uint64_t offset,
                   uint64_t bytes, uintptr_t align, int advice)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), map = (uintptr_t)g->parts[t->part].map;

    if (offset >= t->bytes)
        return;
    uintptr_t first = (uintptr_t)t->data + offset, last = first;
    last += bytes < t->bytes - offset ? bytes : t->bytes - offset;
    first &= ~(align - 1);
    first = first > map ? first : map;
    last &= ~(page - 1);
    if (last > first)
        madvise((void *)first, last - first, advice);
}

void gguf_will_read(const struct gguf *g, const struct gguf_tensor *tensor, uint64_t offset,
                    uint64_t bytes)
{
    advise(g, tensor, offset, bytes, (uintptr_t)sysconf(_SC_PAGESIZE), MADV_WILLNEED);
}

/* A fault maps the pages around it too, those in front that were released before among them: they
 * go again. */
void gguf_release(const struct gguf *g, const struct gguf_tensor *tensor, uint64_t offset,
                  uint64_t bytes)
{
    enum { FAULT_AROUND = 1 << 16 };

    advise(g, tensor, offset, bytes, FAULT_AROUND, MADV_DONTNEED);
}
