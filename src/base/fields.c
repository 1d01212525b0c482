#include "base/fields.h"

#include <assert.h>
#include <stdlib.h>

#include "base/xalloc.h"

void fields_init(struct fields *f)
{
        *f = (struct fields){0};
}

void fields_done(struct fields *f)
{
        free(f->text);
        free(f->list);
        fields_init(f);
}

void fields_clear(struct fields *f)
{
        f->text_len = 0;
        f->count = 0;
}

static uint32_t keep(struct fields *f, struct span s)
{
        size_t at = f->text_len;
        if (s.len)
                memcpy(f->text + at, s.ptr, s.len);
        f->text_len += s.len;
        return (uint32_t)at;
}

void fields_add(struct fields *f, struct span name, struct span value)
{
        size_t need = f->text_len + name.len + value.len;
        if (need > f->text_room || !f->text) {
                f->text_room = need < 512 ? 1024 : 2 * need;
                f->text = xrealloc(f->text, f->text_room);
        }
        if (f->count == f->room) {
                f->room = f->room ? 2 * f->room : 16;
                f->list = xrealloc(f->list, f->room * sizeof *f->list);
        }
        struct fields_place *p = &f->list[f->count++];
        p->name = keep(f, name);
        p->value = keep(f, value);
        p->name_len = (uint32_t)name.len;
        p->value_len = (uint32_t)value.len;
}

void fields_cut(struct fields *f, size_t i, size_t len)
{
        assert(i < f->count && len <= f->list[i].value_len);
        f->list[i].value_len = (uint32_t)len;
}

struct field fields_at(const struct fields *f, size_t i)
{
        const struct fields_place *p = &f->list[i];
        return (struct field){{f->text + p->name, p->name_len}, {f->text + p->value, p->value_len}};
}

bool fields_find(const struct fields *f, size_t from, struct span name, struct span *ret_value,
                 size_t *ret_index)
{
        for (size_t i = from; i < f->count; i++) {
                struct field at = fields_at(f, i);
                if (!span_equal_nocase(at.name, name))
                        continue;
                *ret_value = at.value;
                if (ret_index)
                        *ret_index = i;
                return true;
        }
        return false;
}
