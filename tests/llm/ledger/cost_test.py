"""Prices, tokens by rule of thumb, and estimates."""

from datetime import date
from pathlib import Path

import pytest

from pipeline.errors import BadInput
from pipeline.llm.ledger import cost
from pipeline.llm.ledger.cost import EXPECTED_OUTPUT, Price
from tests.support.rows.llm_requests import build_budget, build_request


def test_estimate() -> None:
    """The estimate guesses tokens from lengths, and the answer's from the request's limit if that is lower."""
    requests = [build_request("a" * 400), build_request("字" * 100, params={"max_tokens": 50})]
    tokens, budget = 2 * (4 + 100), build_budget()
    usd = (tokens + 2 * (EXPECTED_OUTPUT + 50)) / 1e6
    most = sum(budget.reserve(request) for request in requests)
    expected = (3, 1, 2, tokens, EXPECTED_OUTPUT + 50, pytest.approx(usd), pytest.approx(most))
    assert cost.estimate(requests, 1, budget) == expected
    assert cost.estimate(requests, 1, budget, is_batch=True)[5:] == pytest.approx((usd / 2, most / 2))
    assert cost.estimate(requests, 1, build_budget(prices={}))[5:] == (None, None)


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("abc", 1), ("abcde", 2), ("你好", 2), ("你好, world", 4), ("，。", 2), ("한글", 2)]
)
def test_tokens_by_rule_of_thumb(text: str, count: int) -> None:
    """One token a CJK character, one for four others, rounded up."""
    assert cost.count_tokens(text) == count


def test_prices(tmp_path: Path) -> None:
    """Every shipped price has a date and positive numbers; a file of the user's adds to them and goes before them."""
    shipped = cost.load_prices()
    assert all(p.input > 0 and p.output >= p.input and p.noted >= date(2026, 1, 1) for p in shipped.values())
    path = tmp_path / "own.toml"
    numbers = "noted = 2026-11-01"
    path.write_text(f'["gpt-4o-mini"]\ninput = 9\noutput = 9\n{numbers}\n["my/m"]\ninput=0\noutput=0\n{numbers}')
    prices = cost.load_prices(path)
    assert prices["gpt-4o-mini"] == Price(9.0, 9.0, date(2026, 11, 1))
    assert prices["my/m"].cost(10**6, 10**6) == 0.0
    assert prices.keys() == shipped.keys() | {"my/m"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "no TOML"),
        ("x = 1", "model 'x': should have input"),
        ("[x]\ninput = 1\noutput = 1", "model 'x': should have input"),
        ("[x]\noutput = 1\nnoted = 2026-01-01", "field 'input': should be a number"),
        ("[x]\ninput = -1\noutput = 1\nnoted = 2026-01-01", "field 'input': should be a number"),
        ("[x]\ninput = 1\noutput = nan\nnoted = 2026-01-01", "field 'output': should be a number"),
        ('[x]\ninput = 1\noutput = "1"\nnoted = 2026-01-01', "field 'output': should be a number"),
    ],
)
def test_prices_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    """A price file that cannot be used is BadInput that names file, model and field."""
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match=message) as raised:
        cost.load_prices(path)
    assert str(path) in str(raised.value)
    with pytest.raises(BadInput, match="cannot be read"):
        cost.load_prices(tmp_path / "absent.toml")
