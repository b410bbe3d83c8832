"""Running a DAG in this process, as the tests of the DAGs do."""

import importlib.util
from pathlib import Path

_PATH = Path(__file__).resolve().parents[1] / "dags" / "conftest.py"
_spec = importlib.util.spec_from_file_location("fixtures_of_dags", _PATH)
assert _spec is not None
assert _spec.loader is not None
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)
globals().update({name: fixture for name, fixture in vars(_fixtures).items() if not name.startswith("_")})
