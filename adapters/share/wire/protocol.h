// The messages between a job and its coordinator, one a line:
//
//   job                                         coordinator
//   Attach + layout, directory, files    ──▶
//                                        ◀──    Welcome + labels, or Refusal
//   Sweep + the active units             ──▶
//   Next                                 ──▶
//                                        ◀──    Load, if it is this job's loader's turn
//   Loaded + sealed memory               ──▶
//                                        ◀──    Units + their memory, overlays, labels;
//                                               SweepEnd, or Refusal
//   Turn (before a chunk, or a batch)    ──▶
//                                        ◀──    TurnGiven, unless it is `alone`
//   Done (after a chunk)                 ──▶
//   Update + sealed memory, files (rw)   ──▶
//                                        ◀──    Updated, or Refusal
//   AskStatistics                        ──▶
//                                        ◀──    Statistics
//
// A job has at most one open request. A job that breaks the protocol is cut off. The end of the
// connection is the end of the job. Both ends are of one build: another version is refused.
#pragma once

#include <cstdint>

namespace graphlane::share {

inline constexpr uint32_t kProtocolVersion = 5;
inline constexpr uint32_t kNoUnit = UINT32_MAX;

enum class Kind : uint32_t {
  kAttach = 1,
  kSweep,
  kNext,
  kLoaded,
  kTurn,
  kDone,
  kUpdate,
  kAskStatistics,
  kWelcome = 101,
  kRefusal,
  kLoad,
  kUnits,
  kSweepEnd,
  kTurnGiven,
  kUpdated,
  kStatistics,
};

struct AttachMessage {
  Kind kind = Kind::kAttach;
  uint32_t version = kProtocolVersion;
  uint32_t thread_count = 1;
  uint32_t thread_count_min = 1;
  uint32_t vertex_bytes = 8;  // U_v
  uint32_t padding = 0;
  // Followed by the name of the first file in its directory. Descriptors: the layout's bytes in
  // sealed memory, the directory, the files.
};

struct WelcomeMessage {
  Kind kind = Kind::kWelcome;
  uint32_t resident = 0;     // all units stay in memory: a job is given each once
  uint64_t version = 0;      // of the graph, with all updates up to it
  uint64_t chunk_bytes = 0;  // S_c; UINT64_MAX: a partition is one chunk
  uint64_t unit_bytes = 0;   // the cut of partitions: units.h
  uint64_t access_ps = 0;    // T(E); 0: unknown
  // Followed by the set of updated partitions, unless there is none.
};

struct RefusalMessage {
  Kind kind = Kind::kRefusal;
  int32_t error = 0;  // errno
  // Followed by the reason.
};

struct SweepMessage {
  Kind kind = Kind::kSweep;
  uint32_t wants_labels = 0;
  uint32_t within = kNoUnit;  // resumes its partition here, with the units before it done
  uint32_t padding = 0;
  // Followed by the set of active units.
};

struct NextMessage {
  Kind kind = Kind::kNext;
  uint32_t leaves_partition = 0;  // drops the partition's other units
  uint64_t access_ps = 0;         // T(E) as this job measured it; 0: not measured
};

struct LoadMessage {
  Kind kind = Kind::kLoad;
  uint32_t partition = 0;
};

struct LoadedMessage {
  Kind kind = Kind::kLoaded;
  uint32_t partition = 0;
  int32_t error = 0;  // the loader's errno; 0: sealed memory comes along
};

struct UnitsMessage {
  Kind kind = Kind::kUnits;
  uint32_t count = 0;
  uint32_t alone = 0;       // the job takes no turns
  uint32_t one_turn = 0;    // a batch: one turn for all units, which ends with Next
  uint32_t has_labels = 0;  // the last descriptor: labels of the whole graph
  uint32_t padding = 0;
  // Followed by `count` GivenUnit, each with up to two descriptors.
};

struct GivenUnit {
  uint32_t unit = 0;
  uint32_t has_memory = 0;   // its first descriptor; else the job has it already
  uint32_t has_overlay = 0;  // its next descriptor: the overlay of its partition
  uint32_t padding = 0;
  uint64_t size_bytes = 0;
};

struct PlainMessage {  // SweepEnd, Done, AskStatistics
  Kind kind;
};

struct TurnMessage {
  Kind kind = Kind::kTurn;
  uint32_t chunk = 0;
  uint64_t process_ns = 0;  // formula 3; 0: unknown
  uint64_t access_ns = 0;   // formula 4 adds it
};

struct TurnGivenMessage {
  Kind kind = Kind::kTurnGiven;
  uint32_t thread_count = 1;
};

struct UpdateMessage {
  Kind kind = Kind::kUpdate;
  uint32_t partition = 0;
  uint32_t chunk = 0;
};

struct UpdatedMessage {
  Kind kind = Kind::kUpdated;
  uint32_t padding = 0;
  uint64_t version = 0;
};

struct StatisticsMessage {
  Kind kind = Kind::kStatistics;
  uint32_t job_count = 0;
  uint64_t loaded_partitions = 0;
  uint64_t loaded_bytes = 0;
  uint64_t given_partitions = 0;
  uint64_t given_bytes = 0;
  uint64_t buffer_bytes = 0;
  uint64_t buffer_bytes_max = 0;
  uint64_t overlay_bytes = 0;
  uint64_t turns = 0;
  uint64_t late = 0;
  uint64_t labelled_partitions = 0;
};

}  // namespace graphlane::share
