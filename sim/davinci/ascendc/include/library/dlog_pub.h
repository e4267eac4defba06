// Levels of messages, of which none is shown; the text is this project's own.
#pragma once
#include <cstdint>
enum { DLOG_DEBUG, DLOG_INFO, DLOG_WARN, DLOG_ERROR };
enum { ASCENDCKERNEL = 1, DEBUG_LOG_MASK = 0x10000 };
