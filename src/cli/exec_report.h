/* cli/exec_report.h - the summary of `weir exec`, for people. */
#ifndef WEIR_CLI_EXEC_REPORT_H
#define WEIR_CLI_EXEC_REPORT_H

#include <stdio.h>

#include "cli/exec_figures.h"

void exec_report_print(FILE *to, struct exec_figures *f); /* puts the scopes in order */

#endif
