#!/usr/bin/env python3
"""A small client of corrald's REST interface, with nothing but Python's standard library.

    corral.py WORKFLOW.json [DEADLINE_SECONDS]

plans pilots for a workflow, asks for them, runs the workflow and lets the pilots go. As a module it has the class Corral, with a
method for each operation in OPERATIONS: those of the interface that it knows, by the names that they have in
openapi.yaml, of which each corrald has its own at /openapi.yaml.
"""

import http.client
import json
import os
import socket
import ssl
import sys
import time
import urllib.parse
import uuid

# Each operation's method and path. A test of Corral's compares them with openapi.yaml.
OPERATIONS = {
    "healthz": ("GET", "/healthz"),
    "createPlan": ("POST", "/v1/plans"),
    "getPlan": ("GET", "/v1/plans/{id}"),
    "provisionPlan": ("POST", "/v1/plans/{id}/provision"),
    "releasePlan": ("POST", "/v1/plans/{id}/release"),
    "listGlideins": ("GET", "/v1/glideins"),
    "createGlidein": ("POST", "/v1/glideins"),
    "getGlidein": ("GET", "/v1/glideins/{id}"),
    "removeGlidein": ("DELETE", "/v1/glideins/{id}"),
    "createRun": ("POST", "/v1/runs"),
    "getRun": ("GET", "/v1/runs/{id}"),
    "cancelRun": ("POST", "/v1/runs/{id}/cancel"),
}

OVER = "SUCCEEDED,FAILED,CANCELLED,DELETED"


class Problem(Exception):
    """An answer of corrald's that says why not (RFC 9457); kind is one of those in docs/api.md."""

    def __init__(self, status, document):
        super().__init__(document.get("detail", "HTTP %d" % status))
        self.status, self.kind = status, document.get("kind", "internal")


class _Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("corrald", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Corral:
    """One corrald: unix:PATH for one's own, https://HOST:PORT with a token for a central one."""

    def __init__(self, server=None, token=None, ca_file=None):
        self._server = server or os.environ["CORRAL_SERVER"]
        self._token, self._ca = token or os.environ.get("CORRAL_TOKEN"), ca_file

    def _connect(self):
        timeout = 120  # a wait takes half of it at most
        if self._server.startswith("unix:"):
            return _Unix(self._server[len("unix:"):], timeout)
        url = urllib.parse.urlsplit(self._server)
        if url.scheme == "https":
            context = ssl.create_default_context(cafile=self._ca)
            return http.client.HTTPSConnection(url.hostname, url.port, timeout=timeout, context=context)
        return http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)

    def call(self, operation, id="", body=None, key=None, **query):
        """Calls one of OPERATIONS and returns what it answers. A change is sent again, under the same key, while there is
        no answer, so that it is made once; after half a minute the last error is raised."""
        method, path = OPERATIONS[operation]
        path = path.replace("{id}", urllib.parse.quote(str(id), safe=""))
        if query:
            path += "?" + urllib.parse.urlencode(query)
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        if method != "GET":
            headers["Idempotency-Key"] = key or uuid.uuid4().hex
        if body is not None:
            headers["Content-Type"], body = "application/json", json.dumps(body)
        until = time.monotonic() + 30
        while True:
            try:
                return self._once(method, path, body, headers)
            except (OSError, http.client.HTTPException):
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def _once(self, method, path, body, headers):
        connection = self._connect()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            document = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status >= 300:
            raise Problem(answer.status, document)
        return document

    def wait_run(self, id):
        """Returns the run once it is over, however it ended."""
        while True:
            run = self.call("getRun", id, wait=OVER, timeout_s=30)
            if run["state"] in OVER.split(","):
                return run


def provision(corral, file, deadline):
    """Runs a workflow on pilots that are planned and asked for it alone; returns the run."""
    with open(file) as f:
        workflow = json.load(f)
    name = os.path.basename(file)
    plan = corral.call("createPlan", body={
        "workflow": workflow, "workflow_name": name, "goal": {"deadline_s": deadline}})
    if plan["state"] == "INFEASIBLE":
        raise SystemExit(plan["reason"])
    key = uuid.uuid4().hex  # the same request under the same key makes one run

    def create():
        return corral.call("createRun", key=key, body={
            "workflow": workflow, "workflow_name": name, "source_dir": os.path.dirname(os.path.abspath(file)),
            "options": {}, "labels": {"plan": str(plan["id"])}})

    try:
        corral.call("provisionPlan", plan["id"])
        try:
            return corral.wait_run(create()["id"])
        except KeyboardInterrupt:  # perhaps before it had the run's id: nobody would ever run the rest
            corral.call("cancelRun", create()["id"])
            raise
    finally:
        corral.call("releasePlan", plan["id"])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit("usage: corral.py WORKFLOW.json [DEADLINE_SECONDS]")
    ended = provision(Corral(), sys.argv[1], float(sys.argv[2]) if len(sys.argv) == 3 else 3600)
    print(ended["id"], ended["state"])
    raise SystemExit(0 if ended["state"] == "SUCCEEDED" else 1)
