"""ToxiGen, Latent Hatred, DGHSD, ISHate and SBIC, in small files of their layouts."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.sources import published, read
from tests.examples.sources.writing import labels, read_count, reasons, table

TOXIGEN = ("target_group", "intent", "toxicity_human", "text")  # not in the published order


@pytest.mark.parametrize(
    ("toxicity", "intent", "label"),
    [
        *((*levels, "implicit") for levels in ((2.0, 1), (4.0, 3.999))),
        *((*levels, "explicit") for levels in ((4.001, 4.001), (5, 5))),
        *((*levels, "neither") for levels in ((1.999, 1), (4.0, 4.0), (4.001, 4.0), (4.0, 4.001))),
    ],
)
def test_toxigen_boundaries(tmp_path: Path, toxicity: float, intent: float, label: str) -> None:
    """Toxicity from 2 to 4 with both ends and intent below 4 is implicit, both above 4 explicit (IMP-13)."""
    path = table(tmp_path / "toxigen.csv", TOXIGEN, ("cats", intent, toxicity, "b'cats will be cats'"))
    data_set = read("toxigen", path)
    prompt = "hate_en" if label == "implicit" else None
    assert data_set.rows.rows() == [("toxigen.csv:1", "en", "cats will be cats", label, None, prompt)]


def test_toxigen_texts_and_levels(tmp_path: Path) -> None:
    """A repr of bytes is decoded, a plain text stays, a row without a level or a text is dropped."""
    rows = [("cats", 1, 3, r"""b"it\xe2\x80\x99s\n a cat's 'life' \\o/" """.strip()), ("", 1, 3, "b-list cats"),
            ("", "", 3, "no level"), ("", 1, 3, "b''")]  # fmt: skip
    data_set = read("toxigen", table(tmp_path / "toxigen.csv", TOXIGEN, *rows))
    assert labels(data_set) == [("it\u2019s a cat's 'life' \\o/", "implicit", None), ("b-list cats", "implicit", None)]
    assert reasons(data_set) == [("no_label", "toxigen.csv:3"), ("blank_text", "toxigen.csv:4")]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_decoding_undoes_repr(text: str) -> None:
    """Whatever the text, its repr as UTF-8 bytes is read back."""
    assert published._decode("toxigen.csv", 2, repr(text.encode())) == text


@pytest.mark.parametrize(
    ("level", "text", "message"),
    [
        ("6", "cats", "field 'toxicity_human' should be a number from 1 to 5 but is '6'"),
        ("nan", "cats", "field 'toxicity_human'"), ("3", r"b'\xff'", "field 'text' should be a repr of UTF-8 bytes"),
        ("3", "b'cats', exit()'", "field 'text'"), ("3", r"b'\d'", "field 'text'"),
    ],
)  # fmt: skip
def test_toxigen_bad_rows(tmp_path: Path, level: str, text: str, message: str) -> None:
    """A level out of range and a broken repr stop the reading, by file and line; a repr is never evaluated as code."""
    path = table(tmp_path / "toxigen.csv", TOXIGEN, ("", 1, 2, "fine"), ("", 1, level, text))
    with pytest.raises(BadInput, match=message) as caught:
        read("toxigen", path)
    assert "toxigen.csv, line 3" in str(caught.value)


def test_latent_hatred(tmp_path: Path) -> None:
    """Explained posts are implicit once an explanation, and their rows of stage 1 are not given again."""
    explained, alone = "Funny how the gate is always  open &amp; the tea gone.", "Some people have never met a rake."
    stage1 = table(
        tmp_path / "implicit_hate_v1_stg1_posts.tsv", ("post", "class"), (explained, "implicit_hate"),
        (alone, "implicit_hate"), ("I dislike gardeners.", "explicit_hate"), ("Nice roses.", "not_hate"), tabs=True,
    )  # fmt: skip
    stage3 = table(
        tmp_path / "implicit_hate_v1_stg3_posts.tsv", ("post", "target", "implied_statement"),
        (explained, "gardeners", "Gardeners steal tea."), (explained, "gardeners", "Gardeners are careless."),
        (alone, "gardeners", " "), tabs=True,
    )  # fmt: skip
    data_set = read("latent_hatred", tmp_path)
    cleaned = "Funny how the gate is always open & the tea gone."
    assert labels(data_set) == [
        (alone, "implicit", None), ("I dislike gardeners.", "explicit", None), ("Nice roses.", "neither", None),
        (cleaned, "implicit", "Gardeners steal tea."), (cleaned, "implicit", "Gardeners are careless."),
    ]  # fmt: skip
    assert reasons(data_set) == [("explained_in_stage_3", f"{stage1.name}:1"), ("no_explanation", f"{stage3.name}:3")]
    assert data_set.rows["prompt"].null_count() == 5
    assert labels(read("latent_hatred", stage3)) == labels(data_set)[3:]
    assert len(labels(read("latent_hatred", stage1))) == 4
    stage3.unlink()
    with pytest.raises(BadInput, match=r"holds no implicit_hate_v1_stg3_posts\.tsv$"):
        read("latent_hatred", tmp_path)
    with pytest.raises(BadInput, match="either the column 'class' or the column 'implied_statement'"):
        read("latent_hatred", table(tmp_path / "x.tsv", ("post",), ("Nice roses.",), tabs=True))


def test_dghsd(tmp_path: Path) -> None:
    """Animosity is implicit, other hate explicit, hate without a type dropped; ids are the data set's own."""
    header = ("", "acl.id", "X1", "text", "label", "type", "target", "level", "split")
    classes = [("hate", "animosity"), ("hate", "derogation"), ("hate", "dehumanization"), ("hate", "threatening"),
            ("hate", "support"), ("nothate", "none"), ("hate", "notgiven"), ("nothate", "notgiven")]  # fmt: skip
    rows = [(n, f"acl{n}", n, f"Sentence {n}.", *pair, "cats", "original", "train") for n, pair in enumerate(classes)]
    old = table(tmp_path / "Dynamically Generated Hate Dataset v0.2.2.csv", header)
    table(tmp_path / "Dynamically Generated Hate Dataset v0.2.3.csv", header, *rows)
    data_set = read("dghsd", tmp_path)
    assert data_set.rows["label"].to_list() == ["implicit", *["explicit"] * 4, "neither", "neither"]
    assert data_set.rows["item_id"].to_list() == [f"acl{n}" for n in (0, 1, 2, 3, 4, 5, 7)]
    assert data_set.rows["prompt"].to_list() == ["hate_en", *[None] * 6]
    assert reasons(data_set) == [("no_label", "acl6")]
    with pytest.raises(BadInput, match=r"line 3: field 'item_id' should be one that no other row has but is 'acl0'"):
        read("dghsd", table(old, header, rows[0], rows[0]))
    with pytest.raises(BadInput, match=r"line 2: field 'type' should be one of animosity, .* but is 'teasing'"):
        read("dghsd", table(old, header, (*rows[0][:5], "teasing", "cats", "original", "train")))


def test_ishate(tmp_path: Path) -> None:
    """The implicit layer is the label; where it is blank, the hateful layer says what is no hate."""
    table(
        tmp_path / "ishate_dev.csv", ("text", "implicit_layer", "label"), ("Cats again .", "Implicit HS", 1),
        ("I dislike cats .", "Explicit HS", 1), ("Cats sleep .", "Non-HS", 0), ("", "Non-HS", 0),
    )  # fmt: skip
    table(
        tmp_path / "ishate_train.csv", ("hateful_layer", "implicit_layer", "text"), ("Non-HS", "", "Cats eat ."),
        ("HS", "", "Cats , eh ?"),
    )  # fmt: skip
    data_set = read("ishate", tmp_path)
    assert [row[1] for row in labels(data_set)] == ["implicit", "explicit", "neither", "neither"]
    assert data_set.rows["prompt"].to_list() == ["hate_en", None, None, None]
    assert reasons(data_set) == [("blank_text", "ishate_dev.csv:4"), ("no_label", "ishate_train.csv:2")]
    rows = pl.DataFrame({"text": ["Cats , hm ."], "hateful_layer": ["HS"], "implicit_layer": ["Implicit HS"]})
    rows.write_parquet(tmp_path / "ishate_train.parquet.gzip", compression="gzip")
    assert labels(read("ishate", tmp_path / "ishate_train.parquet.gzip")) == [("Cats , hm .", "implicit", None)]


def test_davidson(tmp_path: Path) -> None:
    """Hate and offensive language are explicit, the rest is neither; without explicit forms there are no pairs."""
    rows = [(0, 0, "Cats &amp; cats."), (1, 1, "Dogs!"), (2, 2, "Owls.")]
    table(tmp_path / "labeled_data.csv", ("", "class", "tweet"), *rows)
    expected = [("Cats & cats.", "explicit", None), ("Dogs!", "explicit", None), ("Owls.", "neither", None)]
    assert labels(read("davidson", tmp_path)) == expected
    with pytest.raises(BadInput, match="field 'class' should be one of 0, 1, 2 but is '3'"):
        read("davidson", table(tmp_path / "other.csv", ("class", "tweet"), (3, "Ants.")))


def test_sbic(tmp_path: Path) -> None:
    """A stereotype each reader of an offended post names is a pair, once; a post that offends nobody is neither."""
    header = ("whoTarget", "offensiveYN", "post", "targetMinority", "targetStereotype")
    cats, dogs, owls, ants = "Cats know &amp; care.", "What a bark.", "Owls hoot.", "Ants march."
    rows = [(1, 1.0, cats, "cats", "cats are sly"), (1, 0.5, cats, "cats", "cats are vain"),
            (1, "1.0", cats, "cats", "cats are  sly"), ("", 0.0, cats, "", ""), ("", 1.0, dogs, "", ""),
            ("", 0.0, dogs, "", ""), ("", 0.0, owls, "", ""), ("", "0.0", owls, "", ""), ("", "", ants, "", ""),
            ("", 1.0, "", "cats", "cats are sly"), (1, 0.0, "Bees buzz.", "bees", "bees are busy"),
            (1, 1, "Moles dig.", "moles", "Moles dig.")]  # fmt: skip
    path = table(tmp_path / "SBIC.v2.trn.csv", header, *rows)
    table(tmp_path / "SBIC.v2.agg.trn.csv", ("post",), ("not read",))
    data_set = read("sbic", tmp_path)
    assert labels(data_set) == [
        ("Cats know & care.", "implicit", "cats are sly"), ("Cats know & care.", "implicit", "cats are vain"),
        (owls, "neither", None), ("Bees buzz.", "neither", None),
    ]  # fmt: skip
    dropped = {3: "same_row", 4: "another_reader", 5: "no_explanation", 6: "no_explanation", 8: "same_row"}
    dropped |= {9: "no_label", 10: "blank_text", 12: "same_text"}
    assert reasons(data_set) == [(reason, f"{path.name}:{row}") for row, reason in dropped.items()]
    assert read_count(data_set) == len(rows)
    assert data_set.rows["prompt"].null_count() == 4
