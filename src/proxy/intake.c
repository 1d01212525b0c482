#include "proxy/intake.h"

void intake_reset(struct intake *in)
{
        head_clear(&in->head);
        *in = (struct intake){0};
}

static bool take_head(struct intake *in, size_t max_header, size_t max_body, bool ended,
                      struct message_fault *ret_fault)
{
        struct span text = {in->head.text, in->head.len};
        if (text.len > max_header) {
                *ret_fault = (struct message_fault){
                    431, "http_request_error", "The head is larger than clients.max_header allows.",
                    true};
                return false;
        }
        if (!ended)
                return true;
        if (!head_check(text, max_body, &in->facts, ret_fault))
                return false;
        head_clear(&in->head);
        in->phase = INTAKE_BODY;
        return true;
}

bool intake_feed(struct intake *in, const char *data, size_t len, size_t max_header,
                 size_t max_body, struct message_fault *ret_fault)
{
        if (in->phase != INTAKE_BODY) {
                size_t used = 0;
                bool ended = head_feed(&in->head, data, len, &used);
                in->phase = INTAKE_HEAD;
                if (!take_head(in, max_header, max_body, ended, ret_fault))
                        return false;
                data += used;
                len -= used;
        }
        if (in->phase == INTAKE_BODY && in->facts.connect && len > 0) {
                *ret_fault = (struct message_fault){
                    400, "http_request_error", "Bytes came before CONNECT was answered.", true};
                return false;
        }
        if (in->phase != INTAKE_BODY || !in->facts.chunked)
                return true;
        return chunked_feed(&in->chunked, data, len, max_body, max_header, ret_fault);
}
