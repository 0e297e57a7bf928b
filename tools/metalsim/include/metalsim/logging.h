// <metal_logging>: logs go nowhere.
#pragma once

namespace metal {

struct os_log {
  constexpr os_log(const char* /*subsystem*/, const char* /*category*/) {}
  template <class... A>
  void log(const char*, const A&...) const {}
  template <class... A>
  void log_debug(const char*, const A&...) const {}
  template <class... A>
  void log_info(const char*, const A&...) const {}
  template <class... A>
  void log_error(const char*, const A&...) const {}
  template <class... A>
  void log_fault(const char*, const A&...) const {}
};
constexpr os_log os_log_default("", "");

}  // namespace metal
