#!/usr/bin/env python3
"""Check that a deployment is healthy before it is promoted."""

import argparse
import json
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

DATA = Path("data")
OUT = Path("out")
DEFAULT_PORTS = {"http": 80, "https": 443}


class BadData(Exception):
    """A data file that can't be used; the message names the file and what is wrong in it."""


def services(folder):
    """Yield `(service name, its environments)` for each data file, in the order of their names."""
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as reason:
            raise BadData("{}: {}".format(path, reason)) from None
        environments = content.get("environments") if isinstance(content, dict) else None
        if not isinstance(environments, dict):
            raise BadData('{}: needs an object "environments"'.format(path))
        yield str(content.get("service", path.stem)), environments


def check(name, passed, detail):
    return {"check": name, "passed": passed, "detail": detail}


def version_check(wanted, running):
    detail = "runs {}".format(running) if running == wanted else "runs {}, expected {}".format(running, wanted)
    return check("version", running == wanted, detail)


def replicas_check(least, running):
    enough = isinstance(running, int) and isinstance(least, int) and running >= least
    return check("replicas", enough, "{} of at least {}".format(running, least))


def pinned_hosts():
    """Host names that /etc/hosts answers for, so that a reader sees why a check went to an odd address."""
    try:
        lines = Path("/etc/hosts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(name for line in lines for name in line.split("#")[0].split()[1:])


def reachable_check(url, timeout):
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError as reason:
        return check("reachable", False, "{}: {}".format(url, reason))
    if not host or not port:
        return check("reachable", False, "{}: no host and port in this URL".format(url))
    where = "{}:{}{}".format(host, port, " (pinned in /etc/hosts)" if host in pinned_hosts() else "")
    try:
        socket.create_connection((host, port), timeout=timeout).close()
    except OSError as reason:
        return check("reachable", False, "{}: {}".format(where, reason.strerror or reason))
    return check("reachable", True, where)


def inspect(environment, timeout):
    """Make every check that is configured for one service in one environment."""
    found = []
    if "expected_version" in environment:
        found.append(version_check(environment["expected_version"], environment.get("version")))
    if "min_replicas" in environment:
        found.append(replicas_check(environment["min_replicas"], environment.get("replicas")))
    if environment.get("url"):
        found.append(reachable_check(str(environment["url"]), timeout))
    return found


def build_report(env, folder, timeout):
    results = {}
    for name, environments in services(folder):
        environment = environments.get(env)
        if isinstance(environment, dict):
            results[name] = inspect(environment, timeout)
    healthy = all(one["passed"] for checks in results.values() for one in checks)
    return {"environment": env, "healthy": healthy, "services": results}


def save(report):
    """Write the report to ./out; return the path, or the reason why it could not be written."""
    target = OUT / "deploy-{}.json".format(report["environment"])
    try:
        OUT.mkdir(exist_ok=True)
        target.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    except OSError as reason:
        return "not saved: {}: {}".format(target, reason.strerror)
    return "saved to {}".format(target)


def as_text(report):
    lines = ["{}: {}".format(report["environment"], "healthy" if report["healthy"] else "NOT healthy")]
    if not report["services"]:
        lines.append("  nothing is configured for it in {}/".format(DATA))
    for name, checks in report["services"].items():
        lines.append("  {}".format(name))
        for one in checks:
            lines.append("    {:4} {:10} {}".format("ok" if one["passed"] else "FAIL", one["check"], one["detail"]))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", choices=["staging", "production"], required=True, help="the environment to check")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how the report is printed")
    parser.add_argument("--connect-timeout", type=float, default=3.0, metavar="SECONDS", help="for one connection")
    options = parser.parse_args()
    try:
        report = build_report(options.env, DATA, options.connect_timeout)
    except BadData as reason:
        print("check.py: {}".format(reason), file=sys.stderr)
        return 2
    print(as_text(report) if options.format == "text" else json.dumps(report, indent=2))
    print("check.py: report {}".format(save(report)), file=sys.stderr)
    return 0 if report["healthy"] else 1


if __name__ == "__main__":
    sys.exit(main())
