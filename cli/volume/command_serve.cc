// serve.
#include "cli/command.h"
#include "iomgr/server/server_options.h"
#include "iomgr/server/volume_server.h"

namespace graphlane::cli {
namespace {

struct ServeOptions {
  std::string volume;
  std::vector<std::string> options;
  bool foreground = false;
  bool stop = false;
};

Outcome<void> apply(ServerOptions& server, std::string_view option) {
  const size_t equals = std::min(option.find('='), option.size());
  const std::string_view value = option.substr(std::min(equals + 1, option.size()));
  const Outcome<bool> taken = server.take(option.substr(0, equals), value);
  if (!taken) return taken.error();
  if (!*taken) return make_error(EINVAL, "unknown option \"{}\" of a server", option);
  return {};
}

Outcome<int> serve(const ServeOptions& options) {
  ServerOptions server;
  for (const std::string& list : options.options) {
    const Outcome<void> taken =
        for_each_option(list, [&](std::string_view option) { return apply(server, option); });
    if (!taken) return taken.error();
  }
  if (server.cache.budget_bytes == 0) {
    return make_error(EINVAL, "option cache=0: a server shares what is in its memory");
  }
  const auto volume = Volume::open(options.volume);
  if (!volume) return volume.error();
  const Outcome<void> done =
      options.stop ? stop_server(**volume) : serve_volume(*volume, server, options.foreground);
  if (!done) return done.error();
  return kOk;
}

}  // namespace

void add_serve(Parser& parser) {
  const auto options = std::make_shared<ServeOptions>();
  Command* command =
      parser.add("serve", "share what programs read, without a mount or each by its own",
                 "graphlane serve graphs\n\n"
                 "Programs under `run` read the volume's striped files once from the devices for\n"
                 "all of them, into the page cache. Options: cache=auto|SIZE,\n"
                 "share_hold=SECONDS, share_wait=SECONDS, depth=N.");
  command->add_option("VOL", options->volume, "the volume")->required();
  command->add_option("-o", options->options, "options, with commas between them")
      ->type_name("OPTIONS")
      ->one_value_each();
  Option* foreground =
      command->add_flag("-f,--foreground", options->foreground, "serve until interrupted");
  command->add_flag("--stop", options->stop, "end the one that serves the volume")
      ->excludes(foreground);
  parser.on_chosen(command, options, serve);
}

}  // namespace graphlane::cli
