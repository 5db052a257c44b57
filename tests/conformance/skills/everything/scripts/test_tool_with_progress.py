#!/usr/bin/env python3
import json
import os
import time

events = int(os.environ["SKILLRUN_EVENTS_FD"])
for value in (0, 50, 100):
    line = json.dumps({"progress": f"{value} of 100", "value": value, "total": 100})
    os.write(events, f"{line}\n".encode())
    time.sleep(0.05)
print("done")
