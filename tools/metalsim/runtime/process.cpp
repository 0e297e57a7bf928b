// The program: `process RUNTIME CONTROL-FD DATA-FD` serves launches with the runtime library of that path.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** arguments) {
  if (count != 4) return 2;
  void* runtime = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
  void* serve = runtime ? dlsym(runtime, "msl_serve") : nullptr;
  if (!serve) {
    fprintf(stderr, "metalsim: %s\n", dlerror());
    return 2;
  }
  return ((int (*)(int, int))serve)(atoi(arguments[2]), atoi(arguments[3]));
}
