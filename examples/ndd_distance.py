"""Measure how much one word changes what is expected of its neighbours, and drop the words that change it least.

`count` is a model of neighbouring words for trials. Name a masked language model for results, `model="NAME@COMMIT"`.
"""

import pipeline

SENTENCE = "The soup is hot."
for other in ("The soup is hot.", "The soup is cold.", "The train is hot."):
    print(f"{pipeline.ndd(SENTENCE, other):.3f}  {other}")

long = "The old shop, which nobody liked, is shut."
for ratio in (0.8, 0.6):
    print(ratio, *pipeline.compress([long], ratio=ratio))
