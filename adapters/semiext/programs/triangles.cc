// Triangles: the number in the graph, and for each vertex the number that it is in.
#include "adapters/semiext/programs/triangle_program.h"

namespace graphlane::semiext {

Outcome<AlgorithmResult> run_triangles(const ProgramRun& run) {
  using Counts = TriangleProgram::Counts;
  TriangleProgram program(run.graph, run.pool,
                          run.wants_values ? Counts::kTriangles : Counts::kNone);
  Engine<TriangleProgram> engine(run.graph, run.pool, program, TriangleProgram::options(run.graph));
  return run_program(run, "triangles", engine, [&] {
    AlgorithmResult result;
    result.summary = {{"triangles", program.total()}};
    if (run.wants_values) result.add_column("triangles", std::move(program.counts()));
    return result;
  });
}

}  // namespace graphlane::semiext
