// compare-results: compares the values of two runs, by the Python package.
#include "cli/command.h"
#include "cli/graph/convert_python.h"

namespace graphlane::cli {
namespace {

constexpr int kCannotCompare = 2;  // as cmp(1)

struct CompareResultsOptions {
  std::string one, other;
  std::string tolerance;
  bool as_partition = false;
  bool as_json = false;
};

bool is_parquet(const std::string& path) {
  return !path.ends_with(".npy") && !path.ends_with(".csv") && !path.ends_with(".txt");
}

Outcome<int> compare_results(const CompareResultsOptions& options) {
  std::vector<std::string> words = {"compare-results", options.one, options.other};
  if (!options.tolerance.empty()) words.insert(words.end(), {"--tolerance", options.tolerance});
  if (options.as_partition) words.emplace_back("--partition");
  if (options.as_json) words.emplace_back("--json");
  return run_python_package(words, is_parquet(options.one) || is_parquet(options.other));
}

}  // namespace

void add_compare_results(Parser& parser) {
  const auto options = std::make_shared<CompareResultsOptions>();
  Command* command =
      parser.add("compare-results", "compare the values that two runs gave",
                 "graphlane compare-results ranks.npy ranks-of-spark\n\n"
                 "A result is what `algo --out` writes (.npy, .csv, .txt), or Parquet: a file or\n"
                 "a folder of them, with the columns vertex and value, in any order.\n"
                 "Exit status: 0 equal, 1 different, 2 cannot compare.",
                 FailureStatus{.failed = kCannotCompare});
  command->add_option("ONE", options->one, "a result")->required();
  command->add_option("OTHER", options->other, "another")->required();
  command
      ->add_option("--tolerance", options->tolerance,
                   "how far apart equal values may be, relative above 1 (1e-6)")
      ->type_name("T");
  command->add_flag("--partition", options->as_partition,
                    "values are names of groups: equal where the groups are");
  command->add_flag("--json", options->as_json, "as JSON");
  parser.on_chosen(command, options, compare_results);
}

}  // namespace graphlane::cli
