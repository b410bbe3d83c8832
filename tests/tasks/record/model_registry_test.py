"""Models of the tables: list, describe, promote by request, roll back."""

from datetime import UTC, datetime, timedelta

import pytest

from pipeline import settings, warehouse
from pipeline.errors import Missing, Retry
from pipeline.tasks.impscore import scoring
from pipeline.tasks.record import model_registry
from tests.tasks.conftest import Enlist

DAY, NEXT, LATER = "2026-11-19", "2026-11-20", "2026-11-21"


def test_an_older_model_is_promoted_again(tables: object, enlist: Enlist) -> None:
    """A promoted id is in force from the given day, is recorded, and leaves the days before it as they were."""
    first, second = enlist(DAY, 1), enlist(NEXT, 2)
    assert scoring.choose_model().model_id == second
    row = model_registry.promote(first[:10], LATER)
    assert (row["promotion"]["is_forced"], row["promotion"]["replaced"]) == (True, second)
    in_force = [scoring.choose_model(None, day).model_id for day in (DAY, NEXT, LATER, None)]
    assert in_force == [first, second, first, first]
    assert model_registry.read_model(first)["promotion"]["reason"] == "promoted by request"
    assert model_registry.list_models().filter("is_in_force").select("model_id", "day").rows() == [(first, row["day"])]


@pytest.mark.parametrize("days", [(DAY, DAY, DAY), (DAY, NEXT, LATER)])
def test_rollbacks_undo_promotions_in_order(tables: object, enlist: Enlist, days: tuple[str, ...]) -> None:
    """Each rollback puts the model before in force, of the same day too; after the last the shipped one answers."""
    model_ids = [enlist(day, seed) for seed, day in enumerate(days)]
    for model_id in reversed(model_ids):
        assert scoring.choose_model().model_id == model_id
        assert model_registry.roll_back("impscore")["model_id"] == model_id
    assert scoring.choose_model().is_shipped
    with pytest.raises(Missing, match="no model of kind 'impscore' is promoted; kinds with one: none"):
        model_registry.roll_back("impscore")
    assert warehouse.scan("models").collect().height == 3


def test_a_model_of_a_day_to_come_waits_for_it(tables: object, enlist: Enlist) -> None:
    """Until then the one before answers, and is listed as in force."""
    future = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d}"
    first, second = enlist(DAY, 1), enlist(future, 2)
    assert [scoring.choose_model(None, day).model_id for day in (None, future)] == [first, second]
    assert model_registry.list_models().filter("is_in_force")["model_id"].to_list() == [first]


def test_rollbacks_end_where_models_took_turns(tables: object, enlist: Enlist) -> None:
    """A model that was rolled back does not return by the rollback of another that it had replaced."""
    first, second = enlist(DAY, 1), enlist(DAY, 2)
    model_registry.promote(first, DAY)
    assert [model_registry.roll_back("impscore")["model_id"] for _ in range(2)] == [first, second]
    assert scoring.choose_model().is_shipped


def test_a_rollback_is_one_commit(tables: object, enlist: Enlist, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback that fails leaves the model in force; it never demotes one without promoting the one before."""
    first, second = enlist(DAY, 1), enlist(DAY, 2)
    replace, calls = warehouse.replace, []

    def fail_once(*facts: object) -> int:
        calls.append(facts)
        if len(calls) == 1:
            raise Retry("another writer was faster")
        return replace(*facts)  # type: ignore[arg-type]

    monkeypatch.setattr(warehouse, "replace", fail_once)
    with pytest.raises(Retry):
        model_registry.roll_back("impscore")
    assert scoring.choose_model().model_id == second
    model_registry.roll_back("impscore")
    assert (scoring.choose_model().model_id, len(calls)) == (first, 2)


def test_training_again_keeps_what_was_decided(tables: object, enlist: Enlist) -> None:
    """A model that was rolled back, or replaced on its day, is not in force again because its training ran twice."""
    first = enlist(DAY, 1)
    model_registry.roll_back("impscore")
    assert enlist(DAY, 1) == first
    assert scoring.choose_model().is_shipped
    second = enlist(DAY, 2)
    assert enlist(DAY, 1) == first
    assert scoring.choose_model().model_id == second


def test_what_cannot_be_promoted(tables: object, enlist: Enlist) -> None:
    """An id that no model or several have, and a model without its folder, are Missing."""
    model_id = enlist(DAY, 1)
    with pytest.raises(Missing, match="expected the id of one model in the tables, found 0"):
        model_registry.promote("f" * 12, NEXT)
    (settings.models() / model_id).rename(settings.models() / "elsewhere")
    with pytest.raises(Missing, match="its folder is not in"):
        model_registry.promote(model_id, NEXT)
