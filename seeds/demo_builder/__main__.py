"""``python -m seeds.demo_builder [--out seeds/demo]``: write the demo benchmark."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from seeds.demo_builder.build import build, write_files

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Build, check and write; the same bytes every time."""
    parser = argparse.ArgumentParser(prog="python -m seeds.demo_builder", description=main.__doc__)
    parser.add_argument("--out", type=Path, default=Path("seeds/demo"), help="default: seeds/demo")
    out: Path = parser.parse_args(arguments).out
    built = build()
    write_files(built, out)
    size = sum(map(len, built.files.values()))
    sys.stdout.write(f"{out}: {len(built.rows)} questions, {len(built.files)} files, {size} B\n")


if __name__ == "__main__":
    main()
