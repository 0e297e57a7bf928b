#include "findings.h"

#include <string.h>

#include "memory.h"

namespace {

Response* list;
const char* base;
struct Key {
  Finding finding;
  Place place, other;
};
Key keys[MOST_REPORTS];

uint64_t relative(const void* pc) { return pc ? (const char*)pc - base : 0; }

bool same(const Place& a, const Place& b) { return a.pc == b.pc && a.file == b.file && a.line == b.line; }

void set_access(AccessRecord& access, Place place, const Lane* lane) {
  access.pc = relative(place.pc);
  access.earlier_pc = relative(place.earlier_pc);
  access.line = place.line;
  copy_name(access.file, sizeof access.file, place.file ? place.file : "");
  if (lane) access.thread = lane->position.tiitg;
  set_group_position(access.group, group.number);
}

}  // namespace

void reset_findings(Response* response, const void* library_base) {
  list = response;
  base = (const char*)library_base;
  list->report_count = 0;
  list->reports_dropped = 0;
}

// The end of a name that is too long: of a path, that is the file.
void copy_name(char* to, size_t bytes, const char* name) {
  size_t length = strlen(name);
  if (length >= bytes) name += length - bytes + 1;
  memcpy(to, name, strlen(name) + 1);
}

void set_memory(ReportRecord* record, const void* address, size_t bytes) {
  int slot = slot_of(address);
  record->bytes = bytes;
  if (slot == THREADGROUP_SLOT) {
    const Variable* variable = variable_near(address);
    if (!variable) return;
    copy_name(record->variable, sizeof record->variable, variable->name);
    record->offset = (const char*)address - variable->begin;
    record->granule = variable->granule;
  } else if (slot >= 0 && buffer_of(slot).begin) {
    record->buffer = slot;
    record->offset = (const char*)address - (const char*)buffer_arguments()[slot];
  }
}

ReportRecord* new_finding(Finding finding, Place place, Place other, const Lane* lane) {
  for (uint32_t i = 0; i < list->report_count; i++) {
    if (keys[i].finding == finding && same(keys[i].place, place) && same(keys[i].other, other)) {
      list->reports[i].count++;
      return nullptr;
    }
  }
  if (list->report_count == MOST_REPORTS) {
    list->reports_dropped++;
    return nullptr;
  }
  keys[list->report_count] = {finding, place, other};
  ReportRecord* record = &list->reports[list->report_count++];
  memset(record, 0, sizeof *record);
  record->finding = finding;
  record->buffer = -1;
  record->count = 1;
  set_access(record->access, place, lane ? lane : current);
  set_access(record->other, other, nullptr);
  return record;
}
