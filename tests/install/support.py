"""What the tests of installed trees share."""
import json
import subprocess
import sys

SCENARIO = "llama3.1-405b-gb300-512"


def run(*command, env=None, cwd=None):
    """The standard output of a command that must succeed."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(str(c) for c in command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def step_time(program, *options, cwd):
    """Of the quickstart scenario, by name, with nothing in the environment that could point to the source tree."""
    text = run(program, "run", SCENARIO, "--format", "json", *options, env={}, cwd=cwd)
    return json.loads(text)["metrics"]["step_time_s"]
