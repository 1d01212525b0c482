/* cli/process.h - what a command that serves does to its process before. */
#ifndef WEIR_CLI_PROCESS_H
#define WEIR_CLI_PROCESS_H

/* Opens /dev/null for each standard descriptor that is closed: the next file or connection would be
 * taken for it, and the log written there. */
void process_fill_standard_descriptors(void);

/* As many descriptors as may be: each connection takes one at the front and one behind. */
void process_raise_descriptor_limit(void);

#endif
