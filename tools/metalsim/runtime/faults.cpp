#include "faults.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#if defined(__APPLE__)
#include <sys/ucontext.h>
#else
#include <ucontext.h>
#endif
#include <unistd.h>

#include "fibers.h"
#include "findings.h"
#include "memory.h"
#include "shadow.h"

const void* last_kernel_pc;
bool division_reported;

namespace {

constexpr int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

Response* answer;
int reply_to;
const char* library_begin;
size_t library_bytes;
char signal_stack[64 << 10];

struct Machine {
  const char* pc;
  bool writes;
};

Machine machine_of(void* context) {
  ucontext_t* c = (ucontext_t*)context;
#if defined(__APPLE__) && defined(__aarch64__)
  return {(const char*)c->uc_mcontext->__ss.__pc, (c->uc_mcontext->__es.__esr & 0x40) != 0};  // ESR_EL1.ISS.WnR
#elif defined(__APPLE__)
  return {(const char*)c->uc_mcontext->__ss.__rip, (c->uc_mcontext->__es.__err & 2) != 0};
#elif defined(__aarch64__)
  Machine machine = {(const char*)c->uc_mcontext.pc, false};
  for (_aarch64_ctx* record = (_aarch64_ctx*)c->uc_mcontext.__reserved; record->magic;
       record = (_aarch64_ctx*)((char*)record + record->size))
    if (record->magic == ESR_MAGIC) machine.writes = ((esr_context*)record)->esr & 0x40;  // ESR_EL1.ISS.WnR
  return machine;
#else
  return {(const char*)c->uc_mcontext.gregs[REG_RIP], (c->uc_mcontext.gregs[REG_ERR] & 2) != 0};
#endif
}

// Symbols are looked up one byte before a call's return address: the address of an instruction is moved on by one.
Place place_of(const char* pc) {
  Dl_info info;
  Place place;
  if (dladdr(pc, &info) && info.dli_fbase == library_begin) place.pc = pc + 1;
  // For code that belongs to no line of the kernel's: where the lane was last seen.
  place.earlier_pc = last_kernel_pc;
  if (current && current->line) {
    place.file = current->file;
    place.line = current->line;
  }
  return place;
}

void report_fault(int number, const char* address, const Machine& machine) {
  int slot = number == SIGFPE || number == SIGILL ? -1 : slot_of(address);
  const Buffer* buffer = slot >= 0 && slot < THREADGROUP_SLOT && buffer_of(slot).begin ? &buffer_of(slot) : nullptr;
  Finding finding = Finding::Crash;
  Reason reason = Reason::Signal;
  if (number == SIGFPE) {
    finding = Finding::Division;
    reason = Reason::Ended;
  } else if (buffer && address >= buffer->begin && address < buffer->end) {
    finding = Finding::WriteToInput;
    reason = Reason::Ended;
  } else if (buffer || slot == THREADGROUP_SLOT) {
    finding = Finding::OutOfBounds;
    reason = Reason::Ended;
  } else if (is_stack_guard(address)) {
    reason = Reason::StackOverflow;
  } else if ((uintptr_t)address < 1 << 16) {
    reason = Reason::NullPointer;
  }
  ReportRecord* report = new_finding(finding, place_of(machine.pc));
  if (!report) return;
  report->reason = reason;
  report->info[0] = number;
  report->info[1] = (uint64_t)address;
  report->access.writes = machine.writes;
  set_memory(report, address, 1);
}

void on_fault(int number, siginfo_t* info, void* context) {
  char* address = (char*)info->si_addr;
  Machine machine = machine_of(context);
  bool bad_memory = number == SIGSEGV || number == SIGBUS;
  if (bad_memory && settings.mode == Mode::Check && map_stray_page(address)) {
    // The access reads poison, or writes where nobody looks, and the kernel goes on: more may be found.
    if (!just_reported(address)) report_fault(number, address, machine);
    return;
  }
  if (number != SIGFPE || !division_reported) report_fault(number, address, machine);
  stop_launch();
}

void on_timer(int, siginfo_t*, void* context) {
  new_finding(Finding::Timeout, place_of(machine_of(context).pc));
  stop_launch();
}

}  // namespace

void watch(Response* response, int reply_pipe) {
  answer = response;
  reply_to = reply_pipe;
  stack_t stack = {};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  // A fault within the handler ends the process; Python then reports a crash at an unknown place.
  for (int number : FAULTS) sigdelset(&action.sa_mask, number);
  action.sa_sigaction = on_fault;
  for (int number : FAULTS) sigaction(number, &action, nullptr);
  action.sa_sigaction = on_timer;
  sigaction(SIGPROF, &action, nullptr);
}

// Of processor time: a busy machine makes no kernel endless, and endless ones are always busy.
void start_timer(uint64_t microseconds) {
  itimerval timer = {};
  timer.it_value.tv_sec = microseconds / 1000000;
  timer.it_value.tv_usec = microseconds % 1000000;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

void stop_timer() {
  itimerval none = {};
  setitimer(ITIMER_PROF, &none, nullptr);
}

void set_library(const void* base, size_t bytes) {
  library_begin = (const char*)base;
  library_bytes = bytes;
  last_kernel_pc = nullptr;
  division_reported = false;
}

void stop_launch() {
  answer->threadgroup_bytes = threadgroup_peak();
  answer->status = Status::Stopped;
  (void)!write(reply_to, "!", 1);
  _exit(0);
}

bool is_in_library(const void* address) {
  return address >= library_begin && address < library_begin + library_bytes;
}

ptrdiff_t offset_in_library(const void* address) { return (const char*)address - library_begin; }
