#include "core/media_type.h"

#include "base/fields.h"

/* Without its parameters; empty where it is not told. */
static struct span media_type(const struct fields *fields)
{
        struct span value, type = {NULL, 0};
        if (fields_find(fields, 0, span_of("Content-Type"), &value, NULL))
                (void)span_next(&value, ';', &type);
        return type;
}

static bool begins(struct span text, const char *with)
{
        struct span head = span_of(with);
        return text.len >= head.len && span_equal_nocase((struct span){text.ptr, head.len}, head);
}

static bool ends(struct span text, const char *with)
{
        struct span tail = span_of(with);
        return text.len >= tail.len &&
               span_equal_nocase((struct span){text.ptr + text.len - tail.len, tail.len}, tail);
}

bool media_type_is_json(const struct fields *fields)
{
        struct span type = media_type(fields);
        return span_equal_nocase(type, span_of("application/json")) ||
               span_equal_nocase(type, span_of("text/json")) || ends(type, "+json");
}

bool media_type_is_text(const struct fields *fields)
{
        return media_type_is_json(fields) || begins(media_type(fields), "text/");
}
