// The names of a counter that a user sees. Each struct of statistics has one list of them,
// for_each_counter(stats, visit(name, value)), for JSON, Prometheus and reports.
#pragma once

namespace graphlane {

struct CounterName {
  const char* key;     // in JSON; in Prometheus with `_total` behind what only grows
  const char* phrase;  // after the number in a report
  const char* help;    // a sentence
  bool is_gauge = false;
};

}  // namespace graphlane
