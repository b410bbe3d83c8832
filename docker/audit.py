"""Asks pip-audit about the locked packages, and says plainly how many it could ask about.

pip-audit counts a package that its service does not know, or a mirror does not tell of, as no finding. Here that is
none: exit code 0 says that all packages were looked up and nothing is known against them, 1 that something is known,
75 that some or all could not be looked up.

    python docker/audit.py .venv/tools/bin/pip-audit docker/requirements-cpu.txt
"""

import json
import subprocess
import sys
from typing import Any


def judged(told: dict[str, Any]) -> tuple[int, list[str]]:
    """Exit code and lines of one report of pip-audit in JSON: a finding a line, then what the report covers."""
    packages = told["dependencies"]
    asked = [one for one in packages if "skip_reason" not in one]
    lines = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'none yet'}"
        for one in asked
        for fault in one["vulns"]
    ]
    code = 1 if lines else 0 if packages and len(asked) == len(packages) else 75
    lines.append(f"{len(asked)} of {len(packages)} packages could be looked up; {len(lines)} known vulnerabilities")
    if len(asked) < len(packages):
        lines.append(
            "the others are unknown to the advisory service, or it cannot be reached here: nothing is said of them"
        )
    return code, lines


def main(tool: str, locks: list[str]) -> int:
    """Ask about each file; return the gravest exit code."""
    codes = [0]
    for lock in locks:
        asked = [
            tool,
            "--requirement",
            lock,
            "--no-deps",
            "--disable-pip",
            "--format",
            "json",
            "--progress-spinner",
            "off",
        ]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        try:
            told = json.loads(done.stdout)
        except json.JSONDecodeError:
            last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            told = {"dependencies": []}
            sys.stderr.write(f"{lock}: pip-audit said no more than: {last}\n")
        code, lines = judged(told)
        sys.stdout.writelines(f"{lock}: {line}\n" for line in lines)
        codes.append(code)
    return 1 if 1 in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
