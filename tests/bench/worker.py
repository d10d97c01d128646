"""Runs a worker process for programs of tests/bench. src/model/protocol.h describes requests and replies."""

import json
import subprocess


class WorkerProcess:
    """A worker process, which answers one request at a time."""

    def __init__(self, program, environment=None):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True, env=environment)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
