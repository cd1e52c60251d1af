"""A real pseudo-terminal that gpu-cli runs in: what it shows, and keys that are pressed."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

DEADLINE_S = 60


class PtyClient:
    """A command on a terminal with the given number of columns and rows."""

    def __init__(self, command, environment, columns=80, rows=24):
        self.master, slave = pty.openpty()
        self.resize(columns, rows, tell=False)
        self.output = bytearray()
        self.ended = False
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=slave, stdout=slave, stderr=slave,
            env=environment | {"TERM": "xterm"}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def resize(self, columns, rows, tell=True):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            self.process.send_signal(signal.SIGWINCH)

    def read(self, seconds):
        """Takes what comes within this time; False: nothing came."""
        if self.ended or not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            data = b""
        self.ended = not data
        self.output += data
        return bool(data)

    def press(self, keys):
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            data = data[os.write(self.master, data[:512]):]
            self.read(0)

    def shows(self, text, after=0):
        """The place behind the text, as soon as it is there."""
        text = text.encode() if isinstance(text, str) else text
        deadline = time.monotonic() + DEADLINE_S
        while (place := self.output.find(text, after)) < 0:
            assert time.monotonic() < deadline and not self.ended, bytes(self.output[-2000:])
            self.read(1)
        return place + len(text)

    def wait(self):
        """Its exit code."""
        deadline = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, bytes(self.output[-2000:])
            self.read(0.05)
        while self.read(0.2):
            pass
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE_S)
        os.close(self.master)
