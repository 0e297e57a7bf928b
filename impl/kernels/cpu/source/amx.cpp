#include "amx.h"

#if defined(INFERSPEC_AMX)

#include <sys/syscall.h>
#include <unistd.h>

namespace inferspec {

bool has_tiles() {
    // Linux gives a process the tiles' registers when it asks for them.
    static const bool granted = syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* tile data */) == 0;
    return granted;
}

}  // namespace inferspec

#else

namespace inferspec {

bool has_tiles() { return false; }

}  // namespace inferspec

#endif
