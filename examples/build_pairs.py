"""Build pairs of implicit and explicit sentences from answers of a language model; see what their length gives away.

The answers are those of the sample. A model that orders pairs has to beat the length, or it has learned nothing else.
"""

from pipeline import sample
from pipeline.examples.impscore import pairs
from pipeline.llm import request

built, dropped = pairs.pair_completions(request.read_cassette(sample.COMPLETIONS))
print(f"{built.height} pairs, {dropped.height} answers dropped")
for row in built.filter(lang="en").head(3).iter_rows(named=True):
    print(f"- {row['implicit']}\n  {row['explicit']}")

is_longer = built["implicit"].str.len_chars() > built["explicit"].str.len_chars()
print(f"the longer sentence is the implicit one in {is_longer.mean():.0%} of the pairs")
