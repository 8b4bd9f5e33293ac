"""Measures Graphlane; README.md describes the rooms."""

# The name of each command, and the module that it is `main` of.
MODULES = {"limits": "measure.limits", "compare": "measure.compare", "check": "goals.check", "soak": "goals.soak",
           "same-answers": "goals.same_answers", "figure": "figures.figure", "report": "figures.report",
           "labels": "costs.labels", "warm-reads": "costs.warm_reads", "mount-reads": "costs.mount_reads", "cold-opens": "costs.cold_opens",
           "preload-costs": "costs.preload_costs", "kv-stores": "costs.kv_stores", "run-all": "run_all", "demo": "demo"}
