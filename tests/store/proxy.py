"""A socket in front of PostgreSQL's that can be cut, or breaks by itself."""

import pathlib
import select
import socket
import tempfile
import threading

SOCKET = ".s.PGSQL.5432"


class Proxy:
    """Forwards until cut(); then bytes stay where they are until join()."""

    def __init__(self, target):
        self.target = str(target)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gs-proxy-"))
        self.open = threading.Event()
        self.open.set()
        self.budget = self.most = None  # pieces that a connection lasts for
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / SOCKET))
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def database(self):
        return f"host={self.folder} user=postgres dbname=postgres"

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.forward, args=(client,), daemon=True).start()

    def forward(self, client):
        with client, socket.socket(socket.AF_UNIX) as server:
            self.open.wait()
            left = self.next_budget()
            try:
                server.connect(self.target)
                while left > 0:
                    ready, _, _ = select.select([client, server], [], [])
                    for source in ready:
                        data = source.recv(65536)
                        self.open.wait()
                        if not data:
                            return
                        (server if source is client else client).sendall(data)
                        left -= 1
            except OSError:
                pass

    def break_after(self, first, most):
        """Connections break after first, first + 1, ... pieces, and from most on again."""
        self.budget, self.most = first, most

    def next_budget(self):
        if self.budget is None:
            return float("inf")
        budget = self.budget
        self.budget = self.budget + 1 if self.budget < self.most else self.most // 3
        return budget

    def cut(self):
        self.open.clear()

    def join(self):
        self.open.set()

    def stop(self):
        self.join()
        self.listener.close()
