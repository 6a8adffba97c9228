"""Takes away how processes fork: Python imports this at its start if the folder is on its path.

What torch itself calls on any system but Windows stays.
"""

import multiprocessing.context
import os
import signal

for module, names in ((os, ("fork", "forkpty", "setsid")), (signal, ("SIGHUP", "pthread_kill"))):
    for name in filter(vars(module).get, names):
        delattr(module, name)
multiprocessing.set_start_method("spawn")
multiprocessing.context._concrete_contexts.pop("fork", None)
