"""The variants of a comparison: how one program gets at the same files.

Their names label samples, and stand in tables and figures.
"""

BASELINE = "OS striped volume"
MOUNTED = "mounted"
PRELOADED = "preloaded"
SHARED = "mounted and preloaded"  # programs meet in the mount's memory
MAPPED = "mounted and preloaded, mapped"  # and have what is there in their buffers, not copies of it
KIT = "mounted, by the kit"  # programs that were compiled against adapters/
KIT_UNSCHEDULED = "mounted, by the kit, unscheduled"  # partitions as they stand in the graph
KIT_VARIANTS = (KIT, KIT_UNSCHEDULED)
VOLUME = "volume"  # `graphlane algo`, which needs neither mount nor preloading
IN_MEMORY = "in memory"  # the same, after it has read all lists
IN_TURN = "OS striped volume, in turn"  # of several programs, one after the other
CEILING = "ceiling"
COMPUTE_ONLY = "computation alone"  # in memory, on devices without limit
VARIANTS = (BASELINE, MOUNTED, PRELOADED)
PARTS = ("lanes", "merging", "prefetch", "cache", "packing")  # of the preload library, to be left out
WITHOUT = " without "


def preloaded_without(*parts: str) -> str:
    """The variant without these parts of Graphlane."""
    return PRELOADED + WITHOUT + ", ".join(parts) if parts else PRELOADED


def disabled_parts(variant: str) -> str:
    """The variant's disabled parts in the form of GRAPHLANE_DISABLE."""
    return variant.removeprefix(PRELOADED).removeprefix(WITHOUT).replace(" ", "")


def is_preloaded(variant: str) -> bool:
    return variant.startswith(PRELOADED)


def is_ours(variant: str) -> bool:
    return variant in (MOUNTED, SHARED, MAPPED, *KIT_VARIANTS, VOLUME, IN_MEMORY) or is_preloaded(variant)
