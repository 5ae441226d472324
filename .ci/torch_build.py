"""Say before the download that a torch with CUDA is coming to a machine without GPU: `torch_build.py [INDEX]`."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

MESSAGE = """\
No NVIDIA GPU here, but the torch that pip finds brings CUDA: {count} packages, so that 3.1 GB are downloaded and 7 GB
fill the disk, not 0.6 and 2.3. The build for CPU does all that is done here. To take it, stop now (Ctrl-C), and name
the index with PyTorch's builds for CPU, which PyTorch's installation page gives:

    make install TORCH_INDEX=ADDRESS
"""


def cuda_packages(index: list[str]) -> list[str]:
    """List what pip would install beside torch for CUDA; nothing where pip cannot say."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", "-c", "constraints.txt"]
    done = subprocess.run([*command, *index, "torch"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        return []  # pip tells why when it is asked to install
    names = [item["metadata"]["name"] for item in json.loads(done.stdout)["install"]]
    return [name for name in names if name.startswith(("nvidia-", "cuda-")) or name == "triton"]


def main() -> None:
    if shutil.which("nvidia-smi") or Path("/dev/nvidia0").exists():
        return
    index = ["--extra-index-url", sys.argv[1]] if sys.argv[1:] else []
    if found := cuda_packages(index):
        print(MESSAGE.format(count=len(found)))


if __name__ == "__main__":
    main()
