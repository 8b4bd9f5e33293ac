"""Measures the cost of reads and writes through a mount, by size and by threads.

fio reads a warm file, each thread its own share: the plain file, the striped one mounted, and preloaded
over the mount, in turn. The results are the ratio of each round's pair, and the CPU seconds per GiB of
reader and daemon together; the raw samples are kept as JSON. With "afresh" the mount's own pages are
dropped before each sample, as in a first sweep with the devices' files in memory. TMPDIR should be on
tmpfs, where that drops nothing else. (fio's threads open the file each. With more than one thread the
preload library leaves writes to the mount.)
"""

import os
import resource
import statistics
from itertools import product
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from experiments.costs.warm_reads import BLOCK, SPREAD_DOUBTFUL, fio, prepare, save
from experiments.measure.options import OUT_FILE
from experiments.workspace import StepFailed, workspace

# Bytes that one sample moves, by block: long enough to tell, short enough to wait for.
MOVED = {4 << 10: 64 << 20, 64 << 10: 448 << 20, 1 << 20: 2 << 30, BLOCK: 2 << 30}
AFRESH = "mounted, afresh"
TICKS = os.sysconf("SC_CLK_TCK")


def daemon_of(mounted: Path) -> int:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if entry.read_bytes().endswith(f"\0{mounted}\0".encode()):
                return int(entry.parent.name)
        except OSError:  # gone meanwhile
            continue
    raise StepFailed(f"{mounted}: no daemon serves it")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS  # utime, stime


def children_cpu_seconds() -> float:
    """Theirs, and that of the kernel's threads which worked for them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sample(variant: str, path: Path, prefix, daemon: int, size: int, kind, moved: int) -> dict:
    """Bytes a second and CPU seconds."""
    rw, block, threads, direct = kind
    share = size // threads // block * block
    before = cpu_seconds(daemon) + children_cpu_seconds()
    jobs, _ = fio(path, prefix, f"--rw={rw}", f"--bs={block}", f"--numjobs={threads}", "--thread",
                  f"--direct={int(direct)}", f"--size={share}", f"--offset_increment={share}",
                  f"--io_size={max(moved // threads, block)}", "--overwrite=1",
                  f"--invalidate={int(variant == AFRESH)}", *(["--readonly"] if rw == "read" else []))
    cpu = cpu_seconds(daemon) + children_cpu_seconds() - before
    moved = sum(job[rw]["io_bytes"] for job in jobs)
    return {"moved": moved, "cpu": cpu,
            "speed": moved / max(1, *(job[rw]["runtime"] for job in jobs)) * 1000}


def measure(variants, daemon: int, size: int, kinds, rounds: int) -> list[dict]:
    samples = []
    for number, kind in product(range(rounds + 1), kinds):
        for variant, (path, prefix) in variants.items():
            if kind[0] == "write" and variant == AFRESH:
                continue
            least = sample(variant, path, prefix, daemon, size, kind, 0)
            # Afresh, no byte comes twice.
            moved = size if variant == AFRESH and kind[1] >= 1 << 20 else MOVED[kind[1]]
            got = sample(variant, path, prefix, daemon, size, kind, moved)
            got["cpu"] = (got["cpu"] - least["cpu"]) / (got["moved"] - least["moved"]) * 2**30
            if number > 0:  # the first round warms
                samples.append({"variant": variant, "kind": kind, "round": number, **got})
    return samples


def table(samples: list[dict]) -> Table:
    shown = Table("what", "threads", "variant", "GiB/s", "of plain", "min", "max", "CPU s/GiB")
    plain = {(*s["kind"], s["round"]): s["speed"] for s in samples if s["variant"] == "plain"}
    for kind, variant in dict.fromkeys((tuple(s["kind"]), s["variant"]) for s in samples):
        ours = [s for s in samples if tuple(s["kind"]) == kind and s["variant"] == variant]
        ratios = [s["speed"] / plain[*kind, s["round"]] for s in ours]
        middle = statistics.median(ratios)
        doubtful = "?" if max(ratios) - min(ratios) > SPREAD_DOUBTFUL * middle else ""
        rw, block, threads, direct = kind
        shown.add_row(f"{rw} {block >> 10} KiB{' O_DIRECT' if direct else ''}", str(threads), variant,
                      f"{statistics.median(s['speed'] for s in ours) / 2**30:.2f}",
                      f"{middle:.2f}{doubtful}", f"{min(ratios):.2f}", f"{max(ratios):.2f}",
                      f"{statistics.median(s['cpu'] for s in ours):.2f}")
    shown.caption = "?: doubtful, the rounds differ widely"
    return shown


@click.command(help=__doc__)
@click.option("--size", "size_mib", default=480, show_default=True, help="Size of the file in MiB.")
@click.option("--depth", default="12M", show_default=True, help="Stripe depth.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--block", "blocks", multiple=True, type=click.Choice([str(b >> 10) for b in MOVED]),
              help="KiB per call; default: all sizes.")
@click.option("--threads", multiple=True, type=int, default=[1, 2, 4, 8], show_default=True)
@click.option("--rw", type=click.Choice(["read", "write"]), default="read", show_default=True)
@click.option("--direct", "direct", type=click.Choice(["no", "yes", "both"]), default="both",
              show_default=True, help="Open with O_DIRECT.")
@click.option("--out", type=OUT_FILE, help="Keep the samples as JSON.")
def main(size_mib, depth, rounds, blocks, threads, rw, direct, out):
    console = Console()
    size = size_mib * 2**20 // BLOCK * BLOCK
    chosen = [int(block) << 10 for block in blocks] or list(MOVED)
    variants_direct = {"no": [False], "yes": [True], "both": [False, True]}[direct]
    kinds = list(product([rw], chosen, threads, variants_direct))
    with workspace(console, 2 * size) as (directory, undo):
        variants = prepare(directory, undo, size, depth)
        del variants["preloaded on stubs"]
        if "mounted" not in variants:
            raise StepFailed("nothing to measure without a mount")
        variants[AFRESH] = variants["mounted"]
        samples = measure(variants, daemon_of(directory / "mnt"), size, kinds, rounds)
    console.print(table(samples))
    if out:
        save(out, size, {"samples": samples})
