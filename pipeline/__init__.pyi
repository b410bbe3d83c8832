from pipeline.api import agreement as agreement
from pipeline.api import compress as compress
from pipeline.api import distance as distance
from pipeline.api import implicitness as implicitness
from pipeline.api import judge as judge
from pipeline.api import ndd as ndd
from pipeline.api import overlap as overlap
from pipeline.api import query as query
from pipeline.api import rank as rank
from pipeline.api import scan as scan
from pipeline.api import tokenize as tokenize

__all__ = [
    "agreement",
    "compress",
    "distance",
    "implicitness",
    "judge",
    "ndd",
    "overlap",
    "query",
    "rank",
    "scan",
    "tokenize",
]

__version__: str
