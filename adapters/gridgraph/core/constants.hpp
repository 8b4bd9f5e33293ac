// Sizes that GridGraph's programs may use.
#ifndef GRAPHLANE_GRIDGRAPH_CONSTANTS_HPP
#define GRAPHLANE_GRIDGRAPH_CONSTANTS_HPP

#define CHUNKSIZE (1 << 20)
#define IOSIZE (24 << 20)

#endif
