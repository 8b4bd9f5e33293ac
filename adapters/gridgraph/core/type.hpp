// GridGraph's vertices and edges.
#ifndef GRAPHLANE_GRIDGRAPH_TYPE_HPP
#define GRAPHLANE_GRIDGRAPH_TYPE_HPP

typedef int VertexId;
typedef long EdgeId;
typedef float Weight;

struct Edge {
  VertexId source;
  VertexId target;
  Weight weight;  // 0 in a grid without weights
};

#endif
