"""scripts/oci-archive: what `make images` packs a root file system into."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile

import pytest

from stub import ROOT


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "root.tar"
    with tarfile.open(made, "w") as archive:
        entry = tarfile.TarInfo("etc/greeting")
        entry.size = 6
        archive.addfile(entry, io.BytesIO(b"hello\n"))
    return made


def pack(root, image):
    subprocess.run(
        [ROOT / "scripts" / "oci-archive", "--name", "test-of-images:1", "--user", "64998:64998",
         "--entry", "/usr/bin/program", "--architecture", "amd64", root, image],
        check=True, timeout=60, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"})
    return image


def blob(files, item):
    kind, _, digest = item["digest"].partition(":")
    data = files[f"blobs/{kind}/{digest}"]
    assert hashlib.sha256(data).hexdigest() == digest
    assert len(data) == item["size"]
    return data


def test_an_archive_is_an_image_with_one_layer(root, tmp_path):
    with tarfile.open(pack(root, tmp_path / "image.tar")) as archive:
        files = {entry.name: archive.extractfile(entry).read() for entry in archive}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    [listed] = json.loads(files["index.json"])["manifests"]
    assert listed["annotations"]["org.opencontainers.image.ref.name"] == "test-of-images:1"
    manifest = json.loads(blob(files, listed))
    config = json.loads(blob(files, manifest["config"]))
    assert config["config"]["User"] == "64998:64998"
    assert config["config"]["Entrypoint"] == ["/usr/bin/program"]
    [layer] = manifest["layers"]
    plain = gzip.decompress(blob(files, layer))
    assert plain == root.read_bytes()
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(plain).hexdigest()}"]


def test_the_same_files_are_the_same_image(root, tmp_path):
    first, second = pack(root, tmp_path / "first.tar"), pack(root, tmp_path / "second.tar")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.skipif(not shutil.which("podman") or os.geteuid() != 0, reason="needs podman and root")
def test_a_runtime_loads_it(root, tmp_path):
    image = pack(root, tmp_path / "image.tar")
    with tempfile.TemporaryDirectory(prefix="oci-") as short:  # podman wants at most 50 letters
        storage = ["podman", "--root", f"{short}/storage", "--runroot", f"{short}/run",
                   "--storage-driver", "vfs"]
        loaded = subprocess.run([*storage, "load", "-i", image], capture_output=True, text=True,
                                timeout=120)
    assert loaded.returncode == 0, loaded.stderr
    assert "test-of-images:1" in loaded.stdout
