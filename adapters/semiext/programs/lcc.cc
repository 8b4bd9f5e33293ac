// Local clustering coefficients, as LDBC Graphalytics defines them. A vertex with d neighbours
// could have d (d - 1) arcs between them, in either direction: the share of those that exist.
#include "adapters/semiext/programs/triangle_program.h"

namespace graphlane::semiext {

Outcome<AlgorithmResult> run_lcc(const ProgramRun& run) {
  TriangleProgram program(run.graph, run.pool, TriangleProgram::Counts::kArcs);
  Engine<TriangleProgram> engine(run.graph, run.pool, program, TriangleProgram::options(run.graph));
  return run_program(run, "lcc", engine, [&] {
    std::vector<double> coefficient(run.graph.vertex_count());
    engine.for_all_vertices([&](VertexId v) {
      const double degree = program.degrees()[v];
      if (degree >= 2) {
        coefficient[v] = static_cast<double>(program.counts()[v]) / (degree * (degree - 1));
      }
    });
    const double sum = run.pool.sum_blocks(coefficient.size(), [&](uint64_t begin, uint64_t end) {
      double part = 0;
      for (uint64_t v = begin; v < end; ++v) part += coefficient[v];
      return part;
    });
    AlgorithmResult result;
    result.summary = {
        {"mean", coefficient.empty() ? 0 : sum / static_cast<double>(coefficient.size())},
        {"triangles", program.total()}};
    if (run.wants_values) result.add_column("coefficient", std::move(coefficient));
    return result;
  });
}

}  // namespace graphlane::semiext
