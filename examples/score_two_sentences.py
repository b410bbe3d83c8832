"""Score two sentences that ask for the same thing, one openly and one by a hint, and measure how far they lie apart."""

import pipeline

OPEN, HINT = "Please be quiet.", "Some of us have an alarm set for five."

for text, row in zip((OPEN, HINT), pipeline.interpret([OPEN, HINT]), strict=True):
    print(f"{row['implicitness']:.2f}  {row['band']:9} above {row['percentile']:.0f} % of the sample  {text}")

[distance] = pipeline.distance([HINT], [OPEN])
print(f"{distance:.2f}  pragmatic distance of both")

[words] = pipeline.explain([HINT])
print("the word that carries most:", max(words, key=lambda word: word[1])[0])
