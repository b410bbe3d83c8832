"""The public functions: what their docstrings show, and what `import pipeline` costs."""

import doctest
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline import api
from pipeline.errors import BadInput


@pytest.mark.parametrize("name", pipeline.__all__)
def test_docstrings_show_what_functions_give(name: str, tables: Path) -> None:
    """Each public function has an example, and gives what the example shows."""
    function = getattr(pipeline, name)
    assert function is getattr(api, name)
    [example] = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_lists_that_do_not_fit_are_named() -> None:
    """Lists of other lengths are BadInput that says which and how long; labels may be of any kind."""
    with pytest.raises(BadInput, match="second: expected 2 texts, as many as first, found 1"):
        pipeline.distance(["a", "b"], ["c"])
    with pytest.raises(BadInput, match="values: expected 2, as many as texts, found 1"):
        pipeline.distil(["a", "b"], [1.0], "model")
    with pytest.raises(BadInput, match=r"labels\[1\]: expected 2 labels, None where one is missing, found 1"):
        pipeline.agreement([[1, "x"], [1]])
    text: Any = "a b"
    answer: Any = {"score": 2}
    wrong: dict[str, Callable[[], object]] = {
        "hellinger, kl, kl_reversed": lambda: pipeline.ndd("a b", "a c", divergence="js"),
        "no lang 'fr'; there are en, zh": lambda: pipeline.ndd("a b", "a c", lang="fr"),
        "balanced": lambda: pipeline.compress(["The shop is shut."], 0.5, weights="none"),
        "one: expected a text, got list": lambda: pipeline.ndd([text], ["b"]),  # type: ignore[arg-type]
        "other: expected a text, got none": lambda: pipeline.ndd("a", ""),
        "text: expected a list of texts, got str": lambda: pipeline.implicitness(text),
        "text: expected a list of texts, got list_iterator": lambda: pipeline.implicitness(iter([text])),
        r"text\[1\]: expected a text, got int": lambda: pipeline.compress([text, 3], 0.5),  # type: ignore[list-item]
        r"references\[0\]: expected a list of texts, got str": lambda: pipeline.overlap([text], [text]),
        "groups: expected lists of texts by name, got list": lambda: pipeline.rank([text]),  # type: ignore[arg-type]
        r"groups\['a'\]: expected a list of texts, got str": lambda: pipeline.rank({"a": text}),
        r"groups\['a'\]: expected at least two texts": lambda: pipeline.rank({"a": [text]}),
        r"groups\['b'\]: .*, all different": lambda: pipeline.rank({"b": [text, text]}),
        r"groups\['c'\]: .* none blank": lambda: pipeline.rank({"c": [text, "\u200b"]}),
        r"texts\[0\]: expected a text, got NoneType": lambda: pipeline.tokenize([None]),  # type: ignore[list-item]
        "first: expected a list of texts, got str": lambda: pipeline.distance(text, text),
        "metrics: expected a list of texts, got str": lambda: pipeline.overlap([text], [[text]], metrics="meteor"),
        r"llm: .* such as '{\"score\": 2}', found dict": lambda: pipeline.judge([text], lambda *_: answer),
        "contexts: expected 1, as many as texts, found 0": lambda: pipeline.judge([text], str, []),
        "labels: expected at least one item, with the labels of two": lambda: pipeline.agreement([[1]]),
        r"labels\[0\]: expected labels, .* found nan": lambda: pipeline.agreement([[1, np.nan]]),
    }
    for message, call in wrong.items():
        with pytest.raises(BadInput, match=message):
            call()
    assert pipeline.ndd("qwx", "zzp") == 0  # counts know neither
    assert pipeline.ndd("the soup is hot", "the soup is cold", divergence="kl") > 0.118  # by Hellinger's distance
    assert pipeline.agreement([[1, 1], ["x", "x"]]) == {"fleiss": 1.0, "krippendorff": 1.0}


def test_arrays_and_series_are_lists() -> None:
    """Arrays of numpy and series of polars are as good as lists."""
    columns: Any = np.array([[1, 2], [1, 1]]), pl.Series(["a", "b"]), pl.Series(["c", "d"])
    assert pipeline.agreement(columns[0]) == pipeline.agreement([[1, 2], [1, 1]])
    assert pipeline.judge(columns[1], lambda _, question: f'{{"score": {"d" in question:d}}}', columns[2]) == [0, 1]


def test_import_is_light() -> None:
    """`import pipeline` imports nothing but itself until a function is used, and names its functions."""
    code = "import sys, pipeline; print(*sorted(m for m in sys.modules if m.startswith(('pipeline', 'polars'))))"
    code += "; assert set(pipeline.__all__) <= set(dir(pipeline))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["pipeline"]


def test_what_needs_an_extra_names_it(tmp_path: Path) -> None:
    """Without torch, the functions that need it raise Missing that says what to install; the others work."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(name='torch')")
    texts, code = '["a b", "a c"]', "import pipeline\n"
    needy = [f"{name}({texts})" for name in ("implicitness", "interpret", "explain")]
    needy += [f"build_reference({texts} * 50, 'x')", f"distance({texts}, {texts})", f"rank({{'a': {texts}}})"]
    needy += [
        "distil([f'It is late {n}.' for n in range(60)], [1, 2] * 30, 'm')",
        "ndd('a b', 'a c')",
        f"compress({texts}, 0.5)",
    ]
    for call in (*needy, "tokenize(['我们'])"):
        code += f"try: print(pipeline.{call})\nexcept Exception as error: print(type(error).__name__, error)\n"
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    message = "Missing torch is not installed: pip install 'undertone-text[train]'"
    assert process.stdout.splitlines() == [message] * len(needy) + ["[['我们']]"]


def test_types_are_published() -> None:
    """The package says that it has types for every public function; any other name is an AttributeError."""
    folder = Path(pipeline.__file__).parent
    assert (folder / "py.typed").is_file()
    names = re.findall(r"^from pipeline.api import (\w+) as \1$", (folder / "__init__.pyi").read_text(), re.MULTILINE)
    assert names == pipeline.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(pipeline, "nothing")  # noqa: B009 - mypy knows that there is none
