#include "findings.h"

#include <string.h>

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

void set_group(AccessRecord& access, uint32_t number) {
  access.group[0] = number % msl_tgp.tgpg[0];
  access.group[1] = number / msl_tgp.tgpg[0] % msl_tgp.tgpg[1];
  access.group[2] = number / msl_tgp.tgpg[0] / msl_tgp.tgpg[1];
}

void set_access(AccessRecord& access, Place place, const Lane* lane) {
  access.pc = relative(place.pc);
  access.earlier_pc = relative(place.earlier_pc);
  access.line = place.line;
  copy_name(access.file, sizeof access.file, place.file ? place.file : "");
  if (lane) access.thread = lane->position.tiitg;
  set_group(access, group.number);
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
