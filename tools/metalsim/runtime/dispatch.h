#pragma once
#include "protocol.h"

// Runs what the request asks for. False: it could not begin, and response->message says why. In cost mode, how often each basic
// block ran is appended to the data file at `data_bytes`.
bool dispatch(const Request& request, Response* response, int data_file, uint64_t data_bytes);
