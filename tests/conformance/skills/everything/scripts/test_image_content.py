#!/usr/bin/env python3
import base64
import os
from pathlib import Path

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
Path(os.environ["SKILLRUN_OUTPUT_DIR"], "pixel.png").write_bytes(base64.b64decode(PNG))
