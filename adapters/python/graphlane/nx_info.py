"""Describes the backend to NetworkX, which reads this without importing the rest."""

NAMES = (
    "ancestors", "average_clustering", "bellman_ford_path_length", "betweenness_centrality", "bfs_edges", "bfs_layers",
    "bfs_predecessors", "bfs_successors", "bfs_tree", "clustering", "connected_components", "core_number", "descendants",
    "descendants_at_distance", "dijkstra_path_length", "has_path", "is_connected", "is_weakly_connected", "k_core", "k_shell",
    "node_connected_component", "number_connected_components", "number_weakly_connected_components", "pagerank",
    "shortest_path_length", "single_source_bellman_ford_path_length", "single_source_dijkstra_path_length",
    "single_source_shortest_path", "single_source_shortest_path_length", "single_target_shortest_path_length",
    "transitivity", "triangles", "weakly_connected_components")


def backend_info() -> dict[str, object]:
    return {
        "backend_name": "graphlane",
        "project": "graphlane",
        "package": "graphlane",
        "short_summary": "Graphs larger than memory, stored over several devices.",
        "functions": {name: {} for name in NAMES},
    }
