// What Python and the process that runs kernels share: one block of memory, written by one side at a time.
// runtime.py declares the same structures for ctypes, and compares their sizes when the process starts.
#pragma once
#include <stdint.h>

constexpr int MOST_BUFFERS = 31;  // Metal's limit for a compute kernel
constexpr int MOST_CONSTANTS = 64;
constexpr int MOST_REPORTS = 256;
constexpr int COLLECTIVE_KINDS = 8;

enum class Mode : uint32_t { Fast, Check, Cost };
enum class Order : uint32_t { Forward, Reverse, Random };

struct BufferRequest {
  uint64_t file_offset;  // where its pages are in the data file
  uint64_t map_bytes;    // whole pages
  uint64_t data_offset;  // of its first byte in those pages: its end is at their end, as far as alignment allows
  uint64_t bytes;
  uint64_t first;    // bytes before the one that the kernel's pointer points to
  uint32_t index;    // [[buffer(index)]]
  uint32_t granule;  // bytes of an element, 4 at most: the unit of race detection
  uint32_t initialised;
  uint32_t writable;
};

struct ConstantRequest {
  uint32_t index;  // [[function_constant(index)]]
  uint32_t bytes;
  uint8_t value[64];
};

struct Request {
  char library[4096];
  uint32_t grid[3];  // threads
  uint32_t threadgroup[3];
  uint64_t threadgroup_bytes[MOST_BUFFERS];  // of the [[threadgroup(n)]] arguments
  uint64_t seed;
  uint64_t timeout_microseconds;
  Mode mode;
  Order lanes;
  Order groups;
  uint32_t reduction;
  uint32_t strict;  // SIMD-group functions order no memory
  uint32_t buffer_count;
  uint32_t constant_count;
  uint32_t unused;
  BufferRequest buffers[MOST_BUFFERS];
  ConstantRequest constants[MOST_CONSTANTS];
};

// In the order of reports.Finding.
enum class Finding : uint32_t {
  Race,
  OutOfBounds,
  Uninitialised,
  DivergentBarrier,
  DivergentCollective,
  InactiveLane,
  Misaligned,
  Shift,
  ArrayOverrun,
  Division,
  Overflow,
  WriteToInput,
  ThreadgroupMemory,
  Crash,
  Timeout,
  SameValueRace,
  PartialCollective,
};

// Why, where the finding alone does not tell: runtime.py puts it into words.
enum class Reason : uint32_t {
  None,
  OtherBarrier,     // DivergentBarrier: `other` waits at another barrier
  ThreadsEnded,     // DivergentBarrier: info[0] threads have ended, `other` is one of them
  LanesMissing,     // DivergentBarrier of a SIMD-group, collectives: lanes info[0] came, lanes info[1] are alive
  LaneRead,         // InactiveLane: lane info[0] was read, lanes info[1] took part
  NullPointer,      // Crash
  StackOverflow,    // Crash
  Signal,           // Crash: signal info[0] at address info[1]
  Bytes,            // ThreadgroupMemory: info[0] bytes
  Ended,            // the launch ended there
  Matrix,           // Uninitialised: a simdgroup_matrix that nobody has set
  Private,          // Uninitialised, ArrayOverrun: on the stack
};

struct AccessRecord {
  // Relative to the library, 0: none. The first of the two and of file and line that is a line of the kernel's counts.
  uint64_t pc, earlier_pc;
  uint32_t thread;
  uint32_t group[3];
  uint32_t writes;
  int32_t line;
  char file[256];  // the end of a longer name
};

struct ReportRecord {
  Finding finding;
  Reason reason;
  int32_t buffer;  // -1: none, or the threadgroup variable that `variable` names
  uint32_t has_other;
  int64_t offset;  // bytes from the start of the buffer or variable
  uint32_t bytes;
  uint32_t granule;  // of the threadgroup variable
  uint64_t count;
  uint64_t info[2];
  char variable[64];
  AccessRecord access, other;
};

struct Counters {
  uint64_t device_bytes_read, device_bytes_written;
  uint64_t threadgroup_bytes_read, threadgroup_bytes_written;
  uint64_t threadgroup_barriers;  // once for each threadgroup
  uint64_t simdgroup_barriers;    // once for each SIMD-group
  uint64_t collectives[COLLECTIVE_KINDS];
  uint64_t device_atomics, threadgroup_atomics;
  uint64_t touched_read[MOST_BUFFERS];  // distinct bytes
  uint64_t touched_written[MOST_BUFFERS];
  uint64_t threads, simdgroups, threadgroups;
};

enum class Status : uint32_t { Running, Done, Stopped, Failed };

struct Response {
  Status status;  // Stopped: the kernel could not go on, and the process is gone. Failed: `message` says why it never began.
  uint32_t report_count;
  uint64_t reports_dropped;
  uint64_t nanoseconds;
  uint64_t threadgroup_bytes;
  uint64_t block_count;  // of basic blocks that ran: pairs (pc, count) at the start of the data file's last part
  char message[512];
  Counters counters;
  ReportRecord reports[MOST_REPORTS];
};

struct Control {
  uint64_t size;  // of this structure
  Request request;
  Response response;
};
