#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the notebooks of this folder from cells/*.py ("# %%" begins a cell)."""
import json
import pathlib

here = pathlib.Path(__file__).parent
for source in sorted((here / "cells").glob("*.py")):
    cells, lines = [], None
    for line in source.read_text().splitlines(keepends=True):
        if line.startswith("# %%"):
            kind = "markdown" if "markdown" in line else "code"
            lines = []
            cell = {"cell_type": kind, "metadata": {}, "source": lines}
            if kind == "code":
                cell.update(execution_count=None, outputs=[])
            cells.append(cell)
        else:
            lines.append(line)
    book = {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4,
            "nbformat_minor": 5}
    (here / (source.stem + ".ipynb")).write_text(json.dumps(book, indent=1) + "\n")
