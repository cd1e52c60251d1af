"""A small Kubernetes API server for tests: lists, watches, bindings, evictions, on HTTP/2 without
TLS. A kubelet is built in: bound pods run at once, and end before they are removed."""

import copy
import json
import socket
import threading
import time
import urllib.parse
import uuid

import h2.config
import h2.connection
import h2.events
import h2.exceptions

KINDS = {"namespaces": "Namespace", "nodes": "Node", "pods": "Pod",
         "persistentvolumes": "PersistentVolume",
         "persistentvolumeclaims": "PersistentVolumeClaim"}


class Refused(Exception):
    """An answer that is not a yes."""

    def __init__(self, status, message, retry_after=None):
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class FakeApi:
    """Faults are functions that tests put in: `fault(method, path)` raises Refused, returns "lose"
    (it happens, and the answer is lost), or None."""

    def __init__(self):
        self.lock = threading.RLock()
        self.version = 100
        self.history = []  # (version, resource, type, object)
        self.forgotten = 0  # versions up to here cannot be continued from
        self.objects = {resource: {} for resource in KINDS}
        self.events, self.requests, self.bindings = [], [], []
        self.fault = lambda method, path: None
        self.runs_pods = True
        self.paged_only = False
        self.connections = []
        self.stopped = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        self.create("namespaces", {"metadata": {"name": "default", "labels": {}}})

    # The cluster.

    def record(self, resource, kind, item):
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, resource, kind, copy.deepcopy(item)))

    @staticmethod
    def key(item):
        return item["metadata"].get("namespace", ""), item["metadata"]["name"]

    def create(self, resource, item):
        with self.lock:
            item = copy.deepcopy(item)
            item["metadata"].setdefault("uid", str(uuid.uuid4()))
            if resource == "pods":
                item["metadata"].setdefault("namespace", "default")
                item.setdefault("status", {"phase": "Pending"})
                for container in item["spec"]["containers"]:
                    resources = container.setdefault("resources", {})
                    resources.setdefault("requests", resources.get("limits", {}))
            assert self.key(item) not in self.objects[resource]
            self.objects[resource][self.key(item)] = item
            self.record(resource, "ADDED", item)
            return copy.deepcopy(item)

    def replace(self, resource, item):
        with self.lock:
            self.objects[resource][self.key(item)] = item
            self.change(resource, item)

    def change(self, resource, item):
        self.record(resource, "MODIFIED", item)

    def remove(self, resource, item, terminal=True):
        if resource == "pods" and terminal and item["spec"].get("nodeName"):
            item["status"]["phase"] = "Failed"
            self.change(resource, item)
        self.objects[resource].pop(self.key(item), None)
        self.record(resource, "DELETED", item)

    def delete_pod(self, name, terminal=True):
        with self.lock:
            self.remove("pods", self.objects["pods"][("default", name)], terminal)

    def finish_pod(self, name, phase="Succeeded"):
        with self.lock:
            pod = self.objects["pods"][("default", name)]
            pod["status"]["phase"] = phase
            self.change("pods", pod)

    def pods(self):
        with self.lock:
            return [copy.deepcopy(pod) for pod in self.objects["pods"].values()]

    def pod(self, name):
        return next((pod for pod in self.pods() if pod["metadata"]["name"] == name), None)

    def bound(self, prefix=""):
        return [pod for pod in self.pods()
                if pod["spec"].get("nodeName") and pod["metadata"]["name"].startswith(prefix)]

    # Its interface.

    def bind(self, namespace, name, body):
        pod = self.objects["pods"].get((namespace, name))
        if not pod:
            raise Refused(404, f"pods {name} not found")
        if body["metadata"].get("uid", pod["metadata"]["uid"]) != pod["metadata"]["uid"]:
            raise Refused(409, "the UID in the precondition does not match")
        if pod["spec"].get("nodeName"):
            raise Refused(409, f"pod {name} is already assigned to a node")
        pod["spec"]["nodeName"] = body["target"]["name"]
        pod["metadata"].setdefault("annotations", {}).update(
            body["metadata"].get("annotations", {}))
        self.bindings.append((pod["metadata"]["uid"], name, body["target"]["name"]))
        self.change("pods", pod)
        if self.runs_pods:
            pod["status"]["phase"] = "Running"
            pod["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]
            self.change("pods", pod)
        return 201, {"kind": "Status", "status": "Success"}

    def take_away(self, namespace, name, options):
        pod = self.objects["pods"].get((namespace, name))
        if not pod:
            raise Refused(404, f"pods {name} not found")
        wanted = options.get("preconditions", {}).get("uid", pod["metadata"]["uid"])
        if wanted != pod["metadata"]["uid"]:
            raise Refused(409, "the UID in the precondition does not match")
        self.remove("pods", pod)
        return 200, {"kind": "Status", "status": "Success"}

    def answer(self, method, path, body):
        """(status, object) of a request that is no watch."""
        parts = path.strip("/").split("/")
        if parts[:3] == ["apis", "events.k8s.io", "v1"] and method == "POST":
            self.events.append(body)
            return 201, body
        if parts[:2] == ["api", "v1"] and len(parts) >= 6 and parts[4] == "pods":
            namespace, name = parts[3], parts[5]
            under = parts[6] if len(parts) > 6 else ""
            if method == "POST" and under == "binding":
                return self.bind(namespace, name, body)
            if method == "POST" and under == "eviction":
                return self.take_away(namespace, name, body.get("deleteOptions", {}))
            if method == "DELETE":
                return self.take_away(namespace, name, body or {})
            pod = self.objects["pods"].get((namespace, name))
            if not pod:
                raise Refused(404, f"pods {name} not found")
            if method == "PATCH" and under == "status":
                if body["metadata"]["uid"] != pod["metadata"]["uid"]:
                    raise Refused(409, "another uid")
                pod["status"]["conditions"] = body["status"]["conditions"]
                self.change("pods", pod)
            return 200, pod
        raise Refused(404, "the server could not find the requested resource")

    def list(self, resource, query):
        items = [self.objects[resource][key] for key in sorted(self.objects[resource])]
        first = int(query.get("continue", ["0"])[0])
        page = items[first:first + 3]  # small pages: they are there to be followed
        metadata = {"resourceVersion": str(self.version)}
        if first + 3 < len(items):
            metadata["continue"] = str(first + 3)
        return 200, {"kind": "List", "metadata": metadata, "items": page}

    # Its connections.

    def accept(self):
        while not self.stopped:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            connection = Connection(self, sock)
            with self.lock:
                self.connections.append(connection)
            threading.Thread(target=connection.serve, daemon=True).start()

    def cut(self, goodbye=False):
        """Ends all connections, as a server that restarts does."""
        with self.lock:
            for connection in self.connections:
                connection.end(goodbye)
            self.connections = []

    def forget(self):
        """What was watched up to now cannot be continued."""
        with self.lock:
            self.forgotten = self.version

    def stop(self):
        self.stopped = True
        self.listener.close()
        self.cut()


class Connection:
    """One HTTP/2 connection, with its streams."""

    def __init__(self, api, sock):
        self.api, self.sock = api, sock
        self.lock = threading.RLock()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.bodies, self.heads = {}, {}
        self.pending = {}  # stream: (bytes, whether it ends)
        self.ended = False

    def end(self, goodbye=False):
        with self.lock:
            self.ended = True
            try:
                if goodbye:
                    self.h2.close_connection()
                    self.sock.sendall(self.h2.data_to_send())
                self.sock.shutdown(socket.SHUT_RDWR)
            except (OSError, h2.exceptions.ProtocolError):
                pass

    def send(self):
        data = self.h2.data_to_send()
        if data:
            self.sock.sendall(data)

    def push(self, stream, data, ends=False):
        """Sends as much as flow control allows now; the rest follows."""
        before, ended = self.pending.get(stream, (b"", False))
        self.pending[stream] = (before + data, ends or ended)
        self.push_pending(stream)

    def push_pending(self, stream):
        data, ends = self.pending.get(stream, (b"", False))
        try:
            while data:
                room = min(self.h2.local_flow_control_window(stream),
                           self.h2.max_outbound_frame_size)
                if room <= 0:
                    break
                self.h2.send_data(stream, data[:room])
                data = data[room:]
            if not data and ends:
                self.h2.end_stream(stream)
                ends = False
        except (h2.exceptions.StreamClosedError, h2.exceptions.ProtocolError):
            data, ends = b"", False
        self.pending[stream] = (data, ends)
        self.send()

    def reply(self, stream, status, item, retry_after=None):
        headers = [(":status", str(status)), ("content-type", "application/json")]
        if retry_after:
            headers.append(("retry-after", str(retry_after)))
        with self.lock:
            if self.ended:
                return
            self.h2.send_headers(stream, headers)
            self.push(stream, json.dumps(item).encode(), ends=True)

    def serve(self):
        try:
            with self.lock:
                self.h2.initiate_connection()
                self.send()
            while not self.ended:
                data = self.sock.recv(65536)
                if not data:
                    break
                with self.lock:
                    events = self.h2.receive_data(data)
                    self.send()
                for event in events:
                    self.take(event)
        except (OSError, h2.exceptions.ProtocolError):
            pass
        self.ended = True
        self.sock.close()

    def take(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.heads[event.stream_id] = {
                k.decode() if isinstance(k, bytes) else k:
                v.decode() if isinstance(v, bytes) else v for k, v in event.headers}
            self.bodies[event.stream_id] = b""
        elif isinstance(event, h2.events.DataReceived):
            self.bodies[event.stream_id] += event.data
            with self.lock:
                self.h2.acknowledge_received_data(event.flow_controlled_length,
                                                  event.stream_id)
                self.send()
        elif isinstance(event, h2.events.WindowUpdated):
            with self.lock:
                for stream in [event.stream_id] if event.stream_id else list(self.pending):
                    self.push_pending(stream)
        elif isinstance(event, h2.events.StreamEnded):
            self.request(event.stream_id)

    def request(self, stream):
        head = self.heads[stream]
        method, target = head[":method"], urllib.parse.urlsplit(head[":path"])
        query = urllib.parse.parse_qs(target.query)
        body = json.loads(self.bodies[stream] or b"null")
        resource = target.path.removeprefix("/api/v1/")
        api = self.api
        with api.lock:
            api.requests.append((method, target.path))
        try:
            fault = api.fault(method, target.path)
            if fault == "lose before":
                return
            if method == "GET" and resource in KINDS:
                if "watch" in query:
                    self.watch(stream, resource, query)
                    return
                with api.lock:
                    status, item = api.list(resource, query)
            else:
                with api.lock:
                    status, item = api.answer(method, target.path, body)
            if fault != "lose":
                self.reply(stream, status, item)
        except Refused as refused:
            self.reply(stream, refused.status,
                       {"kind": "Status", "status": "Failure", "code": refused.status,
                        "message": refused.message}, refused.retry_after)

    def watch(self, stream, resource, query):
        api = self.api
        begins = "sendInitialEvents" in query
        if begins and api.paged_only:
            raise Refused(422, "sendInitialEvents is forbidden")
        since = int(query.get("resourceVersion", ["0"])[0])
        with api.lock:
            if not begins and since < api.forgotten:
                raise Refused(410, "too old resource version")
            with self.lock:
                self.h2.send_headers(stream, [(":status", "200"),
                                              ("content-type", "application/json")])
            if begins:
                since = api.version
                for item in api.objects[resource].values():
                    self.event(stream, "ADDED", item)
                self.event(stream, "BOOKMARK", {"metadata": {
                    "resourceVersion": str(since),
                    "annotations": {"k8s.io/initial-events-end": "true"}}})
        threading.Thread(target=self.follow, args=(stream, resource, since),
                         daemon=True).start()

    def event(self, stream, kind, item):
        with self.lock:
            if not self.ended:
                self.push(stream, json.dumps({"type": kind, "object": item}).encode() + b"\n")

    def follow(self, stream, resource, since):
        try:
            while not self.ended:
                with self.api.lock:
                    news = [entry for entry in self.api.history if entry[0] > since]
                for version, its, kind, item in news:
                    since = version
                    if its == resource:
                        self.event(stream, kind, item)
                time.sleep(0.02)
        except (OSError, h2.exceptions.ProtocolError):
            self.ended = True
