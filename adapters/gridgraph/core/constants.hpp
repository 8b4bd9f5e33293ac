// Sizes that GridGraph's programs may ask for.
#ifndef GRAPHLANE_GRIDGRAPH_CONSTANTS_HPP
#define GRAPHLANE_GRIDGRAPH_CONSTANTS_HPP

#define CHUNKSIZE (1 << 20)
#define IOSIZE (24 << 20)

#endif
