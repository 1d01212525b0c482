/* tools/cppcheck.h - other people's macros that cppcheck cannot read through: it sees no system
 * headers. */
#define json_array_foreach(array, index, value) for (;;)
#define json_object_foreach(object, key, value) for (;;)
#define TAILQ_FOREACH(var, head, field) \
        for ((var) = (head)->tqh_first; (var); (var) = (var)->field.tqe_next)
