// The process that kernels run in: it waits for a byte on stdin, does what the control block asks for, and answers with a byte
// on stdout. A kernel that crashes takes this process with it, and nothing else.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch.h"
#include "faults.h"
#include "memory.h"

extern "C" __attribute__((visibility("default"))) int msl_serve(int control_file, int data_file) {
  signal(SIGINT, SIG_IGN);   // Ctrl-C is for Python, which then ends this process
  signal(SIGPIPE, SIG_IGN);  // Python is gone: reading stdin ends
  void* shared = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, control_file, 0);
  if (shared == MAP_FAILED || !reserve_slots()) {
    fputs("metalsim: the system has no address space to run kernels in (see `ulimit -v`)\n", stderr);
    return 1;
  }
  Control* control = (Control*)shared;
  control->size = sizeof(Control);
  watch(&control->response, STDOUT_FILENO);
  char byte = '!';
  if (write(STDOUT_FILENO, &byte, 1) != 1) return 1;
  while (read(STDIN_FILENO, &byte, 1) == 1) {
    struct stat data;
    if (fstat(data_file, &data)) return 1;
    Response* response = &control->response;
    memset(response, 0, offsetof(Response, reports));
    bool ran = dispatch(control->request, response, data_file, data.st_size);
    response->status = ran ? Status::Done : Status::Failed;
    if (write(STDOUT_FILENO, &byte, 1) != 1) return 1;
  }
  return 0;
}
