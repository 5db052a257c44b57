#!/usr/bin/env python3
import os
from pathlib import Path

Path(os.environ["SKILLRUN_OUTPUT_DIR"], "note.txt").write_text("This is an embedded resource content.")
