"""The one build on every Python that this machine has, from 3.9 on: the stable interface is what it promises. And what is installed."""

import glob
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import simpletrace
from support import HERE, Case, skip

INSTALLED = """
simpletrace/__init__.py simpletrace/__init__.pyi simpletrace/__main__.py simpletrace/_events.py simpletrace/_native.abi3.so
simpletrace/_native.pyi simpletrace/_tables.py simpletrace/_tables.pyi simpletrace/py.typed
tracetool/__init__.py tracetool/backend/__init__.py tracetool/backend/simple.py tracetool/py.typed
METADATA RECORD WHEEL licenses/LICENSE-APACHE licenses/LICENSE-MIT
"""

WANTED = ["3.9", "3.10", "3.11", "3.12", "3.13"]


class Pythons(Case):
    def test_every_python(self):
        installed = pathlib.Path(simpletrace.__file__).parent
        self.assertEqual([path.name for path in installed.glob("_native*.so")], ["_native.abi3.so"])
        for package in ("simpletrace", "tracetool"):
            shutil.copytree(installed.parent / package, self.folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        tried = 0
        for version in WANTED:
            if version == "%d.%d" % sys.version_info[:2]:
                continue
            found = shutil.which(f"python{version}")
            of_pyenv = glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python"))
            python = next((path for path in [*of_pyenv, found] if path and self.answers(path, version)), None)
            if python is None:
                print(f"SKIPPED: test_every_python: no Python {version} on this machine", flush=True)
                continue
            tried += 1
            environment = dict(os.environ, PYTHONPATH=str(self.folder), PYTHONDONTWRITEBYTECODE="1")
            # What is left out of test_running takes its time, and is about memory.
            for words in (
                ["test_interface", "test_damage", "test_versions", "test_capsules"],
                ["test_running", "-k", "exceptions", "-k", "ctrl_c", "-k", "threads", "-k", "another"],
            ):
                words = [python, "-m", "unittest", "-q", *words]
                child = subprocess.run(words, cwd=HERE, env=environment, capture_output=True, text=True)
                self.assertEqual(child.returncode, 0, f"{version}: {child.stdout}{child.stderr}")
        if tried == 0:
            skip("test_every_python", "there is only the one that runs the tests")

    def test_what_is_installed_and_no_more(self):
        try:
            installed = importlib.metadata.distribution("simpletrace-rs")
        except importlib.metadata.PackageNotFoundError:
            skip("test_what_is_installed_and_no_more", "it was not installed by pip")
        # Of pip itself, and of Python.
        others = ("INSTALLER", "REQUESTED", "direct_url.json", ".pyc")
        files = [str(file).split(".dist-info/")[-1] for file in installed.files]
        self.assertEqual(sorted(file for file in files if not file.endswith(others)), sorted(INSTALLED.split()))
        fields = {name: installed.metadata.get(name) for name in ("License-Expression", "Requires-Python", "Requires-Dist")}
        self.assertEqual(fields, {"License-Expression": "MIT OR Apache-2.0", "Requires-Python": ">=3.9", "Requires-Dist": None})
        self.assertIn("Tag: cp39-abi3-", installed.read_text("WHEEL"))

    def answers(self, path, version):
        words = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        return subprocess.run(words, capture_output=True, text=True).stdout.strip() == version


if __name__ == "__main__":
    unittest.main()
