"""The whole pipeline, killed, started twice and haunted at random points, ends with the tables of an undisturbed run.

`make faults` sets FAULTS_KILLS=200 and goes through every DAG, then loses the catalog and rebuilds it; with fewer
kills, 6 by default, the longest DAGs are left out. The counts are printed, and written to FAULTS_REPORT.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from tests.faults import whole
from tests.faults.disturbed import Fault, Flow, Run, calm, every_row, planned
from tests.faults.whole import Do
from tests.support.servers.llm_server import Faults, Server

KILLS = int(os.environ.get("FAULTS_KILLS", "6"))
SEED = int(os.environ.get("FAULTS_SEED", "8"))
IS_NIGHTLY = KILLS > 20
CONCURRENCY = 4


def build_flow(folder: Path, url: str) -> Flow:
    """All of it, or without the longest DAGs."""

    def flow(do: Do) -> None:
        whole.collect(do, is_whole=IS_NIGHTLY)
        whole.impscore(do, folder, url)
        whole.score(do)
        whole.csd(do)
        if IS_NIGHTLY:
            whole.commenting(do)
            whole.ndd(do)
            whole.studies(do)
            if whole.has_wordnet():
                whole.recam(do, folder)
        whole.report(do, is_whole=IS_NIGHTLY)
        whole.upkeep(do, is_whole=IS_NIGHTLY)

    return flow


@pytest.mark.slow
@pytest.mark.nightly
def test_whatever_happens_the_tables_are_those_of_an_undisturbed_run(
    tmp_path: Path, in_force: Callable[..., Path]
) -> None:
    """Killed, started twice, haunted: no row is lost, doubled or seen half-way, and no answer is paid for again."""
    whole.files(tmp_path / "given")
    slow = Faults(seconds=0.05)
    with Server(slow) as server:
        undisturbed = calm(in_force(tmp_path / "calm"), build_flow(tmp_path / "given", server.url), {})
        expected = every_row()
        paid = server.served.total()
    kinds = {
        "between": KILLS // 2, "kill": KILLS - KILLS // 2, **dict.fromkeys(("twice", "ghost"), max(2, KILLS // 10)),
    }  # fmt: skip
    faults = planned(SEED, undisturbed, kinds)
    asking = [call for call, (task, _) in enumerate(undisturbed.took) if task == "tests.faults.whole:ask"]
    faults[asking[0]] += [Fault("kill", share) for share in (0.9, 0.8, 0.7)]  # chance may leave it out
    with Server(slow) as server:
        run = Run(in_force(tmp_path / "disturbed"), {}, faults, undisturbed)
        build_flow(tmp_path / "given", server.url)(run.do)
        paid_again = server.paid
    rows = every_row()
    filled = sum(frame.height > 0 for frame in expected.values())
    report = [f"seed {SEED}, {len(undisturbed.took)} calls that fill {filled} tables, {run.reads} reads beside"]
    if IS_NIGHTLY and not whole.has_wordnet():
        report.append("without recam, for want of WordNet")
    report += [f"{kind}: {word}: {count}" for (kind, word), count in sorted(run.outcomes.items())]
    report.append(f"answers paid for: {paid}, and again {paid_again} in {run.killed_asking} kills while asking")
    print("\n".join(report))  # noqa: T201
    if folder := os.environ.get("FAULTS_REPORT"):
        with Path(folder).open("a", encoding="utf-8") as file:
            file.write("\n".join(report) + "\n")
    for name, frame in expected.items():
        assert_frame_equal(rows[name], frame, check_exact=True)
    assert run.half == []
    assert paid_again <= CONCURRENCY * run.killed_asking
    assert run.killed_asking, "no attempt was killed while it asked"
    killed = sum(count for (_, word), count in run.outcomes.items() if word == "killed")
    assert killed >= KILLS * 3 // 4, "too many attempts ended before they were killed"
    assert filled >= 12
