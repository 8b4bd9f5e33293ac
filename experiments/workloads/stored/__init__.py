"""Engines that compute on stored graphs: `graphlane algo`, and the peers that it is compared with.

    graph.py      the graph, and the formats that it is stored in
    peers.py      other engines: their files and commands
    workload.py   one algorithm, as a workload
"""
