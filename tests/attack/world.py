"""All that is attacked: a site with sign-in, and others that an attack asks for."""

import contextlib
import os
import pathlib
import shutil
import tempfile

import memory
from cluster import Cluster
from conftest import Authority
from scheduler import Scheduler
from target import Door, Site


GROWN_MIB = 64  # by which a scheduler grows that has been flooded


class World:
    """The directory of one run, and the services in it. They start when they are first
    asked for; what one attack started is there for the next."""

    def __init__(self, quick):
        self.quick = quick  # times and counts are those of the slice
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gpu-attack-"))
        os.chmod(self.directory, 0o711)
        self.floods = []  # of the attack that runs
        self.base_mib = 0  # of the scheduler since its last start
        self.sites = {}

    def _started(self, name, make):
        if name not in self.sites:
            self.sites[name] = make()
        return self.sites[name]

    @property
    def site(self):
        """Sign-in, tenants, and two nodes with a prolog and an epilog."""
        return self._started("site", self._make_site)

    def _make_site(self):
        site = Site(self.directory / "site")
        hook = site.directory / "hook"
        hook.write_text("#!/bin/bash\ndate >/dev/null\nexit 0\n")
        hook.chmod(0o755)
        for name in ("a", "b"):
            site.add_agent(f"attacked-{name}-{os.getpid()}",
                           ["--prolog", str(hook), "--epilog", str(hook)])
        return site

    @property
    def open(self):
        """A service without sign-in, with an agent that is root."""
        def make():
            site = Cluster(self.directory / "open")
            site.agent(f"open-{os.getpid()}", arguments=["--user", "nobody"])
            site.http = Door(site.scheduler.port)
            site.rpc = Door(int(site.port))
            return site
        return self._started("open", make)

    @property
    def tls(self):
        """A service with sign-in that speaks TLS."""
        def make():
            directory = self.directory / "tls"
            directory.mkdir()
            authority = Authority(directory)
            certificate, key = authority.make("server")
            site = Site(directory / "site", {"api": {
                "enable_tls": True, "tls_cert_path": str(certificate), "tls_key_path": str(key)}})
            site.authority = authority
            return site
        return self._started("tls", make)

    @contextlib.contextmanager
    def scheduler(self, **options):
        """One more scheduler, for the length of the block."""
        directory = tempfile.mkdtemp(dir=self.directory)
        one = Scheduler(directory, **options)
        try:
            yield one
        finally:
            if one.process:
                one.kill()

    def flood(self, limit_mib, bound, process=None):
        """Watches the memory of the scheduler, or of another process, for the length of the
        block."""
        process = process or self.site.scheduler.process
        return memory.watch(self, process.pid, limit_mib, bound)

    def illness(self):
        """What is wrong with what was started; empty where all is well."""
        for name, site in self.sites.items():
            if name == "open":
                dead = site.scheduler.process.poll() is not None
                ill = "the open scheduler died" if dead else ""
            else:
                ill = site.illness()
            if ill:
                return ill
        return ""

    def tidy(self):
        """Leaves the site as the next attack wants it: without jobs and nodes of this one, and
        with a scheduler that does not hide a flood in memory of the last."""
        self.site.tidy()
        resident_mib = memory.resident_mib(self.site.scheduler.process.pid)
        if resident_mib > self.base_mib + GROWN_MIB and memory.IS_JUDGED:
            self.site.restart()
            self.base_mib = memory.resident_mib(self.site.scheduler.process.pid)

    def revive(self):
        for name, site in list(self.sites.items()):
            if name == "open":
                if site.scheduler.process.poll() is not None:
                    site.stop()
                    del self.sites[name]
            else:
                site.revive()

    def close(self):
        """Ends everything. What `gpu-scheduler check` finds in the databases is returned."""
        faults = []
        for name, site in self.sites.items():
            if name != "open" and site.scheduler.process.poll() is None:
                faults.append(site.stored_faults())
            site.stop()
        if not any(faults):
            shutil.rmtree(self.directory, ignore_errors=True)
        return "; ".join(filter(None, faults))
