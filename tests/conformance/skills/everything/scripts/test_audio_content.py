#!/usr/bin/env python3
import os
import wave

with wave.open(os.environ["SKILLRUN_OUTPUT_DIR"] + "/silence.wav", "wb") as sound:
    sound.setnchannels(1)
    sound.setsampwidth(1)
    sound.setframerate(8000)
    sound.writeframes(b"\x80" * 80)
