/* core/answer_class.h - what an upstream answer means for the limiter and for retrying. */
#ifndef WEIR_CORE_ANSWER_CLASS_H
#define WEIR_CORE_ANSWER_CLASS_H

enum answer_class {
        ANSWER_SUCCESS,    /* the host did the work; also redirects and most 4xx */
        ANSWER_THROTTLED,  /* 429 and its kin: too fast */
        ANSWER_OVERLOADED, /* 503: the host is in trouble; slow down harder */
        ANSWER_BLOCKED,    /* this client is not wanted; slowing down does not help */
        ANSWER_FAILED,     /* no usable answer: 5xx, connect or read failure, timeout */
};
#define ANSWER_CLASSES 5

#endif
