"""promtool judges alert rules: whether exactly some of them fire after an hour of some series."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def alerts(rules: Path) -> list[str]:
    """The names of all alerts in a file of rules."""
    groups = yaml.safe_load(rules.read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


def promtool(prometheus: Path, *arguments: str) -> str:
    done = subprocess.run(
        (str(prometheus / "promtool"), *arguments), capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def firing(alert: str, count: int) -> dict[str, Any]:
    return {
        "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
        "eval_time": "60m",
        "exp_samples": [{"labels": "{}", "value": count}] if count else [],
    }


def judged(
    prometheus: Path,
    rules: Path,
    folder: Path,
    series: Mapping[str, str | None],
    expected: Mapping[str, int],
) -> str:
    """Whether exactly these alerts fire after an hour of these series."""
    inputs = [{"series": name, "values": said} for name, said in series.items() if said is not None]
    test = {
        "interval": "1m",
        "input_series": [{**one, "values": _by_the_minute(one["values"])} for one in inputs],
        "promql_expr_test": [firing(alert, count) for alert, count in expected.items()],
    }
    file = folder / "test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [test]})
    )
    return promtool(prometheus, "test", "rules", str(file))


def _by_the_minute(values: str) -> str:
    """`5x3` in short for `5+0x3`, promtool's own notation."""
    return " ".join(part if "+" in part else part.replace("x", "+0x", 1) for part in values.split())
