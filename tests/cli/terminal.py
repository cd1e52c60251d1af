"""A real terminal, by tmux: what a person sees, and the keys that they press."""

import os
import shlex
import shutil
import subprocess
import time

import pytest

needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux here")


class Terminal:
    """A terminal of so many columns in which a command runs."""

    def __init__(self, directory, command, environment, columns=80, rows=24):
        self.socket = str(directory / "tmux")
        self.environment = {k: v for k, v in environment.items() if not k.startswith("TMUX")}
        self.environment["TERM"] = "xterm-256color"
        words = " ".join(shlex.quote(str(word)) for word in command)
        # What is left on the screen when it has ended is looked at as well.
        shell = f"{words}; echo ended with $?; stty -a | grep -o -- '-*echo '; exec cat"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, shell)

    def tmux(self, *arguments):
        result = subprocess.run(["tmux", "-u", "-S", self.socket, *map(str, arguments)],
                                env=self.environment, capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, result
        return result.stdout

    def screen(self, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", columns, "-y", rows)

    def until(self, condition, seconds=60):
        """The screen, as soon as the condition holds for it."""
        deadline = time.monotonic() + seconds
        while not condition(screen := self.screen()):
            assert time.monotonic() < deadline, screen
            time.sleep(0.05)
        return screen

    def shows(self, text, **options):
        return self.until(lambda screen: text in screen, **options)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=60)
