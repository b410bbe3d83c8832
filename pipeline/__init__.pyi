from pipeline.api import agreement as agreement
from pipeline.api import build_reference as build_reference
from pipeline.api import compress as compress
from pipeline.api import distance as distance
from pipeline.api import distil as distil
from pipeline.api import explain as explain
from pipeline.api import implicitness as implicitness
from pipeline.api import interpret as interpret
from pipeline.api import judge as judge
from pipeline.api import ndd as ndd
from pipeline.api import overlap as overlap
from pipeline.api import query as query
from pipeline.api import rank as rank
from pipeline.api import scan as scan
from pipeline.api import tokenize as tokenize

__all__ = [
    "agreement",
    "build_reference",
    "compress",
    "distance",
    "distil",
    "explain",
    "implicitness",
    "interpret",
    "judge",
    "ndd",
    "overlap",
    "query",
    "rank",
    "scan",
    "tokenize",
]

__version__: str
