"""stop_recording of a tape that is no longer recording raises ValueError.

https://www.tensorflow.org/api_docs/python/tf/GradientTape#stop_recording: "RuntimeError: if the tape is not currently
recording."
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

with tf.GradientTape() as tape:
    pass
try:
    with tape.stop_recording():
        got = "no error"
except (RuntimeError, ValueError) as raised:
    got = f"{type(raised).__name__}: {raised}"
right = got.startswith("RuntimeError")
print(f"got {got}; should be RuntimeError")
print("holds" if right else "wrong")
raise SystemExit(not right)
