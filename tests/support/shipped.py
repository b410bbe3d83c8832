"""Make again what lies beside the shipped model: its reference and its golden scores.

`python -m tests.support.shipped` after the model was trained again. It keeps texts and tolerances.
"""

import json

import polars as pl

from pipeline.io.atomic import write_text
from pipeline.score import reference
from pipeline.tasks.impscore import references, scoring
from pipeline.tasks.impscore.scoring import SHIPPED, choose_model
from pipeline.training import registry


def main() -> None:
    """Write both files."""
    model_id = registry.read(SHIPPED).model_id
    assert choose_model(model_id).is_shipped
    golden = json.loads((SHIPPED / scoring.GOLDEN).read_text(encoding="utf-8"))
    texts = [text for text, _ in golden["texts"]]
    values, golden["model_id"] = scoring.score_by_folder(pl.Series(texts), SHIPPED)
    lines = ",\n ".join(json.dumps(pair, ensure_ascii=False) for pair in zip(texts, values, strict=True))
    head = json.dumps({name: golden[name] for name in ("model_id", "tolerance")})[:-1]
    write_text(SHIPPED / scoring.GOLDEN, f'{head}, "texts": [\n {lines}\n]}}\n')
    write_text(reference.SHIPPED, reference.format_reference(references.build_reference(ref=model_id)))


if __name__ == "__main__":
    main()
