#include "proxy/chunked.h"

#include <ctype.h>

static bool fault(struct message_fault *ret, int status, const char *text)
{
        *ret = (struct message_fault){status, "http_request_error", text, true};
        return false;
}

static bool bad(struct message_fault *ret)
{
        return fault(ret, 400, "The body's chunks are malformed.");
}

static bool take_digit(struct chunked *c, char byte, size_t max_body, struct message_fault *ret)
{
        int lower = tolower((unsigned char)byte);
        size_t digit = (size_t)(lower <= '9' ? lower - '0' : lower - 'a' + 10);
        if (++c->digits > 16)
                return bad(ret);
        c->left = 16 * c->left + digit;
        if (c->left > max_body - c->total)
                return fault(ret, 413, "The body is larger than clients.max_body allows.");
        return true;
}

static bool take_size(struct chunked *c, char byte, size_t max_body, struct message_fault *ret)
{
        if (isxdigit((unsigned char)byte))
                return take_digit(c, byte, max_body, ret);
        if (byte == ';' && c->digits)
                return fault(ret, 400, "Chunk extensions are not supported.");
        if (byte != '\r' || !c->digits)
                return bad(ret);
        c->state = CHUNKED_SIZE_LF;
        return true;
}

static void end_size(struct chunked *c)
{
        c->digits = 0;
        c->total += c->left;
        c->line_empty = true;
        c->state = c->left ? CHUNKED_DATA : CHUNKED_TRAILER;
}

static bool take_trailer(struct chunked *c, char byte, size_t max, struct message_fault *ret)
{
        if (++c->trailer > max)
                return fault(ret, 431, "The trailer is larger than clients.max_header allows.");
        if (byte == '\n' && c->line_empty)
                c->state = CHUNKED_END;
        if (byte != '\r')
                c->line_empty = byte == '\n';
        return true;
}

bool chunked_feed(struct chunked *c, const char *data, size_t len, size_t max_body,
                  size_t max_trailer, struct message_fault *ret_fault)
{
        for (size_t i = 0; i < len && c->state != CHUNKED_END; i++) {
                switch (c->state) {
                case CHUNKED_SIZE:
                        if (!take_size(c, data[i], max_body, ret_fault))
                                return false;
                        break;
                case CHUNKED_DATA: {
                        size_t n = len - i < c->left ? len - i : c->left;
                        c->left -= n;
                        i += n - 1;
                        if (c->left == 0)
                                c->state = CHUNKED_DATA_CR;
                        break;
                }
                case CHUNKED_DATA_CR:
                        if (data[i] != '\r')
                                return bad(ret_fault);
                        c->state = CHUNKED_DATA_LF;
                        break;
                case CHUNKED_SIZE_LF:
                case CHUNKED_DATA_LF:
                        if (data[i] != '\n')
                                return bad(ret_fault);
                        if (c->state == CHUNKED_SIZE_LF)
                                end_size(c);
                        else
                                c->state = CHUNKED_SIZE;
                        break;
                case CHUNKED_TRAILER:
                        if (!take_trailer(c, data[i], max_trailer, ret_fault))
                                return false;
                        break;
                case CHUNKED_END:
                        break;
                }
        }
        return true;
}
