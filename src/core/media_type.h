/* core/media_type.h - what sort of body an answer says that it has (RFC 9110, 8.3). */
#ifndef WEIR_CORE_MEDIA_TYPE_H
#define WEIR_CORE_MEDIA_TYPE_H

#include <stdbool.h>

struct fields;

/* application/json, text/json, and all that ends with +json (RFC 6839). */
bool media_type_is_json(const struct fields *fields);

/* Something that people can read: JSON, or text/ of any kind. Without a type it is neither. */
bool media_type_is_text(const struct fields *fields);

#endif
